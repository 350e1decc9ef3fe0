//! Long polls: who waits for bytes of a partition, and when they have enough.
//!
//! A waiting fetch is one [`FetchWait`] registered with every partition it asked for. Each advance
//! of a watermark subtracts its bytes; the wait fires once, when enough have come or when a
//! partition has news that cannot wait (deleted, another leader, truncated).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// One fetch that waits for `min_bytes`.
pub struct FetchWait {
    /// What was missing at first.
    asked_bytes: i64,
    missing_bytes: AtomicI64,
    fired: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl FetchWait {
    /// Fires after `missing_bytes` more bytes became visible.
    pub fn new(missing_bytes: i64) -> Arc<FetchWait> {
        let asked_bytes = missing_bytes.max(1);
        Arc::new(FetchWait {
            asked_bytes,
            missing_bytes: AtomicI64::new(asked_bytes),
            fired: AtomicBool::new(false),
            waker: Mutex::new(None),
        })
    }

    /// Ready once fired; keeps the newest waker otherwise.
    pub fn poll_fired(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.fired.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        *self.waker.lock() = Some(cx.waker().clone());
        // A firing between the check and the registration saw no waker.
        if self.fired.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Some bytes were there already: fewer are missing.
    pub fn lower_to(&self, missing_bytes: i64) {
        let asked = self.asked_bytes;
        self.charge((asked - missing_bytes).max(0));
    }

    fn charge(&self, bytes: i64) -> bool {
        if self.missing_bytes.fetch_sub(bytes, Ordering::AcqRel) > bytes {
            return false;
        }
        self.fire();
        true
    }

    fn fire(&self) {
        self.fired.store(true, Ordering::Release);
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }
}

/// The waits of one partition.
#[derive(Default)]
pub struct Waits {
    list: Mutex<Vec<Arc<FetchWait>>>,
}

impl Waits {
    pub fn register(&self, wait: &Arc<FetchWait>) {
        self.list.lock().push(Arc::clone(wait));
    }

    pub fn forget(&self, wait: &Arc<FetchWait>) {
        self.list.lock().retain(|other| !Arc::ptr_eq(other, wait));
    }

    /// `bytes` more became visible.
    pub fn charge(&self, bytes: i64) {
        let mut list = self.list.lock();
        if !list.is_empty() {
            list.retain(|wait| !wait.charge(bytes));
        }
    }

    /// News that every waiter must see at once.
    pub fn fire_all(&self) {
        for wait in self.list.lock().drain(..) {
            wait.fire();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::{FetchWait, Waits};

    fn fired(wait: &FetchWait) -> bool {
        wait.poll_fired(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn fires_when_the_bytes_of_all_partitions_add_up() {
        let (a, b) = (Waits::default(), Waits::default());
        let wait = FetchWait::new(100);
        a.register(&wait);
        b.register(&wait);
        a.charge(60);
        assert!(!fired(&wait));
        b.charge(39);
        assert!(!fired(&wait));
        b.charge(1);
        assert!(fired(&wait));
    }

    #[test]
    fn news_fire_whatever_is_missing_and_the_forgotten_stay_silent() {
        let waits = Waits::default();
        let (stays, leaves) = (FetchWait::new(1 << 30), FetchWait::new(1 << 30));
        waits.register(&stays);
        waits.register(&leaves);
        waits.forget(&leaves);
        waits.fire_all();
        assert!(fired(&stays));
        assert!(!fired(&leaves));
    }
}
