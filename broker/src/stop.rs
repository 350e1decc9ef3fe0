//! The wish that the node stop: said once, heard by every task.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Unlike tokio's `watch`, which wakes in an order drawn by chance, this wakes tasks in the order
/// in which they began to wait: a simulated stop goes the same way each time.
#[derive(Default)]
pub struct Stop {
    asked: AtomicBool,
    notify: Notify,
}

impl Stop {
    /// Asks everyone to stop, for good.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
        self.notify.notify_waiters();
    }

    /// Ends when somebody has asked, at once if that was before.
    pub async fn asked(&self) {
        // `notified` counts wake-ups from here on, so none is missed between the look and the wait.
        let notified = self.notify.notified();
        if !self.asked.load(Ordering::SeqCst) {
            notified.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::Stop;

    #[test]
    fn everyone_hears_it_early_or_late() {
        let stop = Stop::default();
        let cx = &mut Context::from_waker(Waker::noop());
        let (mut polled, mut made) = (pin!(stop.asked()), pin!(stop.asked()));
        assert!(polled.as_mut().poll(cx).is_pending());
        stop.ask();
        assert!(polled.poll(cx).is_ready());
        assert!(made.as_mut().poll(cx).is_ready());
        assert!(pin!(stop.asked()).poll(cx).is_ready());
    }
}
