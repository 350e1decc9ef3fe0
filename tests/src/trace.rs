//! What happened in a run, event by event, as numbers that two runs of one seed must share.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::clock::SimClock;
use crate::dice::mix;

/// One event: when, what, and a digest of its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Traced {
    pub at_ms: u64,
    pub what: &'static str,
    /// Which connection, node or writer.
    pub who: u64,
    pub digest: u64,
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traced { at_ms, what, who, digest } = self;
        write!(f, "{at_ms} ms: {what} {who} ({digest:016x})")
    }
}

/// The events of a run, in order. Clones share them.
#[derive(Clone)]
pub struct Trace {
    clock: SimClock,
    events: Arc<Mutex<Vec<Traced>>>,
}

impl Trace {
    pub fn new(clock: SimClock) -> Trace {
        Trace { clock, events: Arc::default() }
    }

    pub fn bytes(&self, what: &'static str, who: u64, bytes: &[u8]) {
        self.number(what, who, digest(bytes));
    }

    pub fn number(&self, what: &'static str, who: u64, digest: u64) {
        let at_ms = self.clock.now_ms();
        self.events.lock().push(Traced { at_ms, what, who, digest });
    }

    pub fn take(&self) -> Vec<Traced> {
        std::mem::take(&mut *self.events.lock())
    }
}

/// One number for a whole trace.
pub fn hash(events: &[Traced]) -> u64 {
    events.iter().fold(0, |hash, event| {
        let what = digest(event.what.as_bytes());
        [event.at_ms, what, event.who, event.digest]
            .iter()
            .fold(hash, |hash, part| mix(hash ^ part))
    })
}

fn digest(bytes: &[u8]) -> u64 {
    let chunks = bytes.chunks(8);
    chunks.fold(bytes.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash ^ u64::from_le_bytes(word))
    })
}
