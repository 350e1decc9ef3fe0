//! What clients do in a run, and what they write down about it.
//!
//! One file a kind of client. All of them go on through any failure until their work is done, and
//! say in the history what they asked for before they ask, and what they were told after it.

mod admin;
mod audit;
mod calls;
mod member;
mod reader;
pub mod value;
mod writer;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

pub use admin::{create_topic, delete_records};
pub use audit::audit;
pub use member::{MemberPlan, member};
pub use reader::read;
pub use writer::{WriterPlan, write};

use crate::client::Client;
use crate::clock::{SimClock, pause_ms};
use crate::dice::Dice;
use crate::history::{Event, History};
use crate::net::Network;

/// The run's only topic.
pub const TOPIC: &str = "events";

/// What the clients of a run share.
#[derive(Clone)]
pub struct Run {
    pub seed: u64,
    pub clock: SimClock,
    pub network: Network,
    pub server: SocketAddr,
    pub history: Arc<Mutex<History>>,
    /// Answers that no fault explains.
    pub odd: Arc<Mutex<Vec<String>>>,
    /// The last failure that each client saw, to say why it is stuck.
    pub troubles: Arc<Mutex<BTreeMap<String, String>>>,
    /// Set when clients without an end of their own should stop.
    pub stop: Arc<AtomicBool>,
}

impl Run {
    /// Writes down what happened.
    pub fn record(&self, event: Event) {
        self.history.lock().push(self.clock.now_ms(), event);
    }

    fn odd(&self, text: String) {
        let at_ms = self.clock.now_ms();
        self.odd.lock().push(format!("{at_ms} ms: {text}"));
    }

    fn trouble(&self, who: &str, number: u32, text: String) {
        let at_ms = self.clock.now_ms();
        self.troubles.lock().insert(format!("{who} {number}"), format!("{at_ms} ms: {text}"));
    }

    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn client(&self, number: u32) -> Client {
        let [.., high, low] = number.to_be_bytes();
        let ip = IpAddr::V4(Ipv4Addr::new(10, 1, high, low));
        Client::new(self.network.clone(), ip, self.server)
    }

    fn dice(&self, part: &str, number: u32) -> Dice {
        Dice::of(self.seed, part, u64::from(number))
    }
}

/// Waits a little before the next attempt.
async fn back_off(dice: &Dice) {
    pause_ms(dice.between(20, 300)).await;
}
