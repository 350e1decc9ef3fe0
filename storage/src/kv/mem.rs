//! `Kv` in memory, for tests and the simulator. The content lives in a [`MemStore`] that outlives
//! the handle, as a directory outlives a process, and a crash loses the batches that were not
//! synced.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Kv, KvBatch, KvError, KvOp, Pairs};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Default)]
struct Inner {
    live: Map,
    durable: Map,
    /// Batches in `live` that `durable` lacks, oldest first.
    unsynced: Vec<KvBatch>,
    /// Counts restarts; handles of an older generation are dead.
    generation: u64,
    /// Writes until one fails; `None`: never.
    writes_left: Option<u64>,
}

/// The content. Clones share it.
#[derive(Clone, Default)]
pub struct MemStore(Arc<Mutex<Inner>>);

impl MemStore {
    pub fn new() -> MemStore {
        MemStore::default()
    }

    /// A handle for the running process; older ones are dead from here on.
    pub fn open(&self) -> MemKv {
        let mut inner = self.0.lock();
        inner.generation += 1;
        MemKv { store: self.clone(), generation: inner.generation }
    }

    /// The power fails. Of the unsynced batches the first `survivors` are kept: they may have
    /// reached the disk, in order, without anyone having waited for it.
    pub fn crash(&self, survivors: usize) {
        let mut inner = self.0.lock();
        inner.generation += 1;
        inner.writes_left = None;
        let unsynced = std::mem::take(&mut inner.unsynced);
        for batch in unsynced.iter().take(survivors) {
            apply(&mut inner.durable, batch);
        }
        inner.live = inner.durable.clone();
    }

    /// Batches that a crash could lose.
    pub fn unsynced(&self) -> usize {
        self.0.lock().unsynced.len()
    }

    /// Lets `writes` more writes pass; then all fail, changing nothing, until the next crash.
    pub fn fail_after(&self, writes: u64) {
        self.0.lock().writes_left = Some(writes);
    }
}

/// A process's handle to a [`MemStore`].
pub struct MemKv {
    store: MemStore,
    generation: u64,
}

impl MemKv {
    fn with<T>(&self, body: impl FnOnce(&mut Inner) -> Result<T, KvError>) -> Result<T, KvError> {
        let mut inner = self.store.0.lock();
        if inner.generation != self.generation {
            return Err(KvError::Io("simulated process is dead".to_owned()));
        }
        body(&mut inner)
    }
}

impl Kv for MemKv {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        self.with(|inner| Ok(inner.live.get(key).cloned()))
    }

    fn scan(&self, from: &[u8], to: &[u8], limit: usize) -> Result<Pairs, KvError> {
        if from >= to {
            return Ok(Pairs::new());
        }
        self.with(|inner| {
            let range = inner.live.range(from.to_vec()..to.to_vec());
            Ok(range.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect())
        })
    }

    fn write(&mut self, batch: KvBatch, sync: bool) -> Result<(), KvError> {
        self.with(|inner| {
            match &mut inner.writes_left {
                Some(0) => return Err(KvError::Io("simulated write error".to_owned())),
                Some(left) => *left -= 1,
                None => {}
            }
            apply(&mut inner.live, &batch);
            inner.unsynced.push(batch);
            if sync {
                for batch in std::mem::take(&mut inner.unsynced) {
                    apply(&mut inner.durable, &batch);
                }
            }
            Ok(())
        })
    }
}

fn apply(map: &mut Map, batch: &KvBatch) {
    for op in &batch.ops {
        match op {
            KvOp::Put { key, value } => drop(map.insert(key.clone(), value.clone())),
            KvOp::Delete { key } => drop(map.remove(key)),
            KvOp::DeleteRange { from, to } if from < to => {
                let keys: Vec<_> =
                    map.range(from.clone()..to.clone()).map(|kv| kv.0.clone()).collect();
                keys.iter().for_each(|key| drop(map.remove(key)));
            }
            KvOp::DeleteRange { .. } => {}
        }
    }
}
