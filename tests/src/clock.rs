//! Virtual time: tokio's paused clock, which moves on only when no task can run.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use broker::env::{BoxFuture, Clock};
use tokio::time::{Instant, sleep, sleep_until};

/// Wall time at the start of every run, ms since 1970.
pub const START_MS: i64 = 1_700_000_000_000;

/// No run sleeps longer than this.
const SLEEP_MS_MAX: i64 = 10 * 365 * 24 * 3_600_000;

/// The clock of everything in one run. Make it inside the run's runtime.
#[derive(Clone, Debug)]
pub struct SimClock {
    start: Instant,
    /// How far the wall clock of the nodes was set forward, for everybody.
    ahead_ms: Arc<AtomicI64>,
    /// The same when the process that asks was started.
    ahead_at_start_ms: i64,
}

impl SimClock {
    pub fn start() -> SimClock {
        SimClock { start: Instant::now(), ahead_ms: Arc::default(), ahead_at_start_ms: 0 }
    }

    /// The clock as a process sees it that starts now.
    pub fn of_new_process(&self) -> SimClock {
        let ahead_at_start_ms = self.ahead_ms.load(Ordering::Relaxed);
        SimClock { ahead_at_start_ms, ..self.clone() }
    }

    /// Sets the wall clock of the nodes; that of the clients stays right.
    pub fn set_ahead(&self, ahead_ms: i64) {
        self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
    }

    /// Virtual milliseconds since the start of the run.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Clock for SimClock {
    fn wall_ms(&self) -> i64 {
        START_MS + self.mono_ms() + self.ahead_ms.load(Ordering::Relaxed)
    }

    fn mono_ms(&self) -> i64 {
        i64::try_from(self.now_ms()).unwrap_or(i64::MAX)
    }

    fn steady_ms(&self) -> i64 {
        START_MS + self.mono_ms() + self.ahead_at_start_ms
    }

    fn sleep_until(&self, deadline_ms: i64) -> BoxFuture<()> {
        let after = u64::try_from(deadline_ms.min(SLEEP_MS_MAX)).unwrap_or(0);
        Box::pin(sleep_until(self.start + Duration::from_millis(after)))
    }
}

/// Lets virtual time pass.
pub async fn pause_ms(ms: u64) {
    sleep(Duration::from_millis(ms)).await;
}
