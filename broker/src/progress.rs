//! How far the start has come: for `/readyz`, for the log, and for whoever waits.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// The steps of a start, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Directories are locked and checked.
    Directories,
    /// The metadata log is read.
    Metadata,
    /// Partitions are opened; each serves as soon as it is ready.
    Recovering,
    Ready,
    Stopping,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::Directories => "directories",
            Phase::Metadata => "metadata",
            Phase::Recovering => "recovering",
            Phase::Ready => "ready",
            Phase::Stopping => "stopping",
        }
    }
}

pub struct Progress {
    phase: Mutex<Phase>,
    opened: AtomicUsize,
    to_open: AtomicUsize,
    failed: AtomicUsize,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress {
            phase: Mutex::new(Phase::Directories),
            opened: AtomicUsize::new(0),
            to_open: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
        }
    }
}

impl Progress {
    pub fn enter(&self, phase: Phase) {
        *self.phase.lock() = phase;
        tracing::debug!(phase = phase.name(), "start");
    }

    pub fn phase(&self) -> Phase {
        *self.phase.lock()
    }

    pub fn expect_partitions(&self, count: usize) {
        self.to_open.fetch_add(count, Ordering::Relaxed);
    }

    pub fn partition_opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// A partition could not be opened: its disk failed, or its log is damaged.
    pub fn partition_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// One of those that could not be opened is tried again.
    pub fn partition_tried_again(&self) {
        self.failed.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many partitions could not be opened.
    pub fn failed(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }

    /// Partitions opened so far, and how many there are.
    pub fn partitions(&self) -> (usize, usize) {
        (self.opened.load(Ordering::Relaxed), self.to_open.load(Ordering::Relaxed))
    }
}
