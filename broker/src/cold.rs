//! Reads that must wait for the disk, on threads of their own: a connection that reads old records
//! holds up nobody else of its shard.
//!
//! Handlers try from memory first (`LogView::from_memory`) and come here with what is not there.

use std::sync::Arc;

use parking_lot::Mutex;
use storage::disk::File;
use tokio::sync::{mpsc, oneshot};

use crate::env::BoxFuture;
use crate::node::Node;

/// Reads at work at a time. A spinning disk gains nothing by more, others little.
const THREADS: usize = 2;

/// Reads that wait; then connections wait until there is a place.
const WAITING_MAX: usize = 1024;

/// The disk is asked for so much behind a range: who reads old records goes on with the next.
const AHEAD_BYTES: u64 = 8 << 20;

/// Read at a time.
const CHUNK_BYTES: usize = 256 << 10;

type Job = Box<dyn FnOnce() + Send>;

/// The way to the threads.
pub struct ColdReads {
    jobs: mpsc::Sender<Job>,
    waiting: Mutex<Option<mpsc::Receiver<Job>>>,
}

impl Default for ColdReads {
    fn default() -> ColdReads {
        let (jobs, waiting) = mpsc::channel(WAITING_MAX);
        ColdReads { jobs, waiting: Mutex::new(Some(waiting)) }
    }
}

impl ColdReads {
    /// Does `work` where it may block. `None`: the node stops.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (done, is_done) = oneshot::channel();
        let job = move || {
            // The connection may be gone.
            let _ = done.send(work());
        };
        self.jobs.send(Box::new(job)).await.ok()?;
        is_done.await.ok()
    }
}

/// Starts the threads; they end with the node.
pub fn start(node: &Arc<Node>) {
    let Some(waiting) = node.cold.waiting.lock().take() else { return };
    let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
    for _ in 0..THREADS {
        let (at, waiting) = (Arc::clone(node), Arc::clone(&waiting));
        let task = move || Box::pin(work(at, waiting)) as BoxFuture<()>;
        node.env.tasks.thread("cold-reads", Box::new(task));
    }
}

async fn work(node: Arc<Node>, waiting: Arc<tokio::sync::Mutex<mpsc::Receiver<Job>>>) {
    let next = || async { waiting.lock().await.recv().await };
    loop {
        let job = tokio::select! {
            biased;
            () = node.stop.asked() => None,
            job = next() => job,
        };
        let Some(job) = job else { break };
        job();
    }
    // Whoever waits is told.
    waiting.lock().await.close();
}

/// Brings a range of a file into memory, and asks for what follows.
pub fn warm(file: &dyn File, position: u64, len: usize, scratch: &mut Vec<u8>) {
    file.will_need(position, (len as u64).saturating_add(AHEAD_BYTES));
    scratch.resize(CHUNK_BYTES, 0);
    let mut done = 0;
    while done < len {
        let chunk = scratch.get_mut(..CHUNK_BYTES.min(len - done)).unwrap_or_default();
        match file.read_at(chunk, position + done as u64) {
            // An error is met again, and told, by who sends the bytes.
            Err(_) | Ok(0) => return,
            Ok(read) => done += read,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use storage::disk::{Disk, OpenMode, SimConfig, SimDisk};

    use super::{CHUNK_BYTES, warm};

    #[test]
    fn warming_reads_the_range_and_stops_where_the_file_ends() {
        let disk = SimDisk::new(SimConfig::seeded(1));
        let file = disk.open(Path::new("f"), OpenMode::Create).expect("a file");
        file.set_len(3 * CHUNK_BYTES as u64).expect("there is room");
        let reads = |position: u64, len: usize| {
            let before = disk.stats().reads;
            warm(&*file, position, len, &mut Vec::new());
            disk.stats().reads - before
        };
        assert_eq!(reads(0, 1), 1);
        assert_eq!(reads(7, 2 * CHUNK_BYTES), 2);
        // One more that finds the end.
        assert_eq!(reads(CHUNK_BYTES as u64, 9 * CHUNK_BYTES), 3);
    }
}
