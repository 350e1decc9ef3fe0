//! One direction of a stream: bytes with the time at which they arrive.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Latency, Network};
use crate::dice::Dice;
use crate::trace::Trace;

/// Bytes that may be under way; then the writer waits.
const WINDOW_BYTES: usize = 64 << 10;

/// One write in so many is taken only in part.
const SHORT_WRITES_PER_MILLE: u64 = 50;

#[derive(Default)]
struct State {
    under_way: VecDeque<(Instant, Vec<u8>)>,
    arrived: VecDeque<u8>,
    bytes: usize,
    /// The writer sends no more.
    finished: bool,
    /// The reader takes no more.
    refused: bool,
    cut: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    arrival: Option<Pin<Box<Sleep>>>,
}

impl State {
    fn wake(&mut self) {
        self.reader.take().into_iter().chain(self.writer.take()).for_each(Waker::wake);
    }

    fn arrive(&mut self, now: Instant) {
        while self.under_way.front().is_some_and(|(at, _)| *at <= now) {
            self.arrived.extend(self.under_way.pop_front().into_iter().flat_map(|(_, b)| b));
        }
    }
}

#[derive(Clone)]
pub(super) struct Pipe {
    id: u64,
    what: &'static str,
    latency: Latency,
    dice: Arc<Dice>,
    trace: Trace,
    /// Nothing arrives before this, on any stream.
    stalled_until: Arc<Mutex<Instant>>,
    state: Arc<Mutex<State>>,
}

impl Pipe {
    pub fn new(id: u64, what: &'static str, network: &Network) -> Pipe {
        let Network { latency, dice, trace, stalled_until, .. } = network.clone();
        Pipe { id, what, latency, dice, trace, stalled_until, state: Arc::default() }
    }

    pub fn is_over(&self) -> bool {
        let state = self.state.lock();
        state.cut || (state.finished && state.refused)
    }

    /// The writer is done; what is under way still arrives.
    pub fn finish(&self) {
        let mut state = self.state.lock();
        state.finished = true;
        state.wake();
    }

    /// The reader is gone: writes fail.
    pub fn refuse(&self) {
        let mut state = self.state.lock();
        state.refused = true;
        state.wake();
    }

    /// Loses what is under way; both ends get an error.
    pub fn cut(&self) {
        let mut state = self.state.lock();
        state.cut = true;
        state.under_way.clear();
        state.arrived.clear();
        state.wake();
    }

    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state.lock();
        state.arrive(Instant::now());
        let over = state.cut || (state.finished && state.under_way.is_empty());
        if over || !state.arrived.is_empty() {
            return Poll::Ready(Ok(()));
        }
        state.reader = Some(cx.waker().clone());
        let Some((at, _)) = state.under_way.front() else { return Poll::Pending };
        let mut arrival = Box::pin(sleep_until(*at));
        let poll = arrival.as_mut().poll(cx);
        state.arrival = Some(arrival);
        poll.map(Ok)
    }

    pub fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state.lock();
        if state.cut {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        state.arrive(Instant::now());
        if state.arrived.is_empty() {
            let end = state.finished && state.under_way.is_empty();
            return if end { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let len = buf.len().min(state.arrived.len());
        for (to, from) in buf.iter_mut().zip(state.arrived.drain(..len)) {
            *to = from;
        }
        state.bytes -= len;
        state.writer.take().into_iter().for_each(Waker::wake);
        Ok(len)
    }

    /// How much a write would take now.
    pub fn room(&self) -> io::Result<usize> {
        let state = self.state.lock();
        if state.cut || state.refused {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match WINDOW_BYTES.saturating_sub(state.bytes) {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            room => Ok(room),
        }
    }

    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.room() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.state.lock().writer = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut len = bytes.len().min(self.room()?);
        if len > 1 && self.dice.chance(SHORT_WRITES_PER_MILLE) {
            len = self.dice.between(1, len as u64) as usize;
        }
        let bytes = &bytes[..len];
        self.trace.bytes(self.what, self.id, bytes);
        let mut state = self.state.lock();
        let wait_ms = self.dice.between(self.latency.low_ms, self.latency.high_ms);
        let mut at = Instant::now() + Duration::from_millis(wait_ms);
        at = at.max(*self.stalled_until.lock());
        if let Some((last, _)) = state.under_way.back() {
            at = at.max(*last);
        }
        state.under_way.push_back((at, bytes.to_vec()));
        state.bytes += len;
        state.reader.take().into_iter().for_each(Waker::wake);
        Ok(len)
    }
}
