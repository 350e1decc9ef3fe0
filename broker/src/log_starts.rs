//! Log starts that clients moved: written down before the client hears of it, so that a crash does
//! not bring back what it deleted. The housekeeper (`tasks.rs`) writes, for all who ask meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Notify, watch};

/// Requests that moved log starts, counted.
pub struct LogStarts {
    asked: AtomicU64,
    wake: Notify,
    /// So many of them are on the disk.
    noted: watch::Sender<u64>,
}

impl Default for LogStarts {
    fn default() -> LogStarts {
        LogStarts { asked: AtomicU64::new(0), wake: Notify::new(), noted: watch::Sender::new(0) }
    }
}

impl LogStarts {
    /// Waits until what was moved before this call is written down, or could not be.
    pub async fn note(&self) {
        let mine = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        self.wake.notify_one();
        // The sender lives as long as `self`.
        let _ = self.noted.subscribe().wait_for(|noted| *noted >= mine).await;
    }

    /// For the housekeeper: waits for somebody who asks; what to `finish` after writing.
    pub async fn asked(&self) -> u64 {
        self.wake.notified().await;
        self.asked.load(Ordering::Acquire)
    }

    /// What was asked so far is written.
    pub fn finish(&self, asked: u64) {
        self.noted.send_replace(asked);
    }
}
