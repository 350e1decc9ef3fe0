//! Bytes of large requests in flight in the whole process. At the bound a connection is not read
//! until another one is done, so TCP pushes back; nothing is refused.

use std::task::Waker;

use parking_lot::Mutex;

/// The bound. A single larger request is let through when nothing else is in flight.
pub const IN_FLIGHT_BYTES_MAX: usize = 256 << 20;

#[derive(Default)]
pub struct Budget {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    used_bytes: usize,
    waiting: Vec<Waker>,
}

impl Budget {
    /// Takes `bytes`; when there is no room, `waker` is woken at the next release.
    pub fn try_charge(&self, bytes: usize, waker: &Waker) -> bool {
        let mut state = self.state.lock();
        if state.used_bytes > 0 && state.used_bytes + bytes > IN_FLIGHT_BYTES_MAX {
            if !state.waiting.iter().any(|known| known.will_wake(waker)) {
                state.waiting.push(waker.clone());
            }
            return false;
        }
        state.used_bytes += bytes;
        true
    }

    pub fn release(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut state = self.state.lock();
        assert!(state.used_bytes >= bytes, "released more than was charged");
        state.used_bytes -= bytes;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::{Wake, Waker};

    use super::{Budget, IN_FLIGHT_BYTES_MAX};

    struct Nobody;

    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn holds_the_bound_and_lets_a_lone_giant_pass() {
        let budget = Budget::default();
        let waker = &Waker::from(Arc::new(Nobody));
        assert!(budget.try_charge(IN_FLIGHT_BYTES_MAX + 1, waker));
        assert!(!budget.try_charge(1, waker));
        // Who asks again and again waits once.
        assert!(!budget.try_charge(1, waker));
        assert_eq!(budget.state.lock().waiting.len(), 1);
        budget.release(IN_FLIGHT_BYTES_MAX + 1);
        assert!(budget.try_charge(IN_FLIGHT_BYTES_MAX, waker));
        assert!(!budget.try_charge(1, waker));
    }
}
