//! When each broker was heard of last. Soft state of the leading controller, not in the image.

use std::collections::BTreeMap;

use crate::image::Image;
use crate::record::MetadataRecord;

/// One broker, as this controller knows it.
#[derive(Clone, Copy, Debug)]
struct Session {
    /// When this controller last heard of the broker; `None` if it has not yet.
    contact_ms: Option<i64>,
    /// Index that the broker has applied; -1 if it has not said.
    applied: i64,
    /// Index of the broker's registration; `i64::MAX` until it is committed.
    registered_at: i64,
    /// Index of the entry that began the broker's controlled shutdown, if one did.
    shutdown_at: Option<i64>,
}

/// The sessions of all registered brokers.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    brokers: BTreeMap<i32, Session>,
    /// Before this nobody could be heard of: when this controller took over.
    start_ms: i64,
    timeout_ms: i64,
}

impl Sessions {
    pub(super) fn new(image: &Image, now_ms: i64, timeout_ms: i64) -> Sessions {
        let at = image.last_applied();
        let session = |in_shutdown: bool| Session {
            contact_ms: None,
            applied: -1,
            registered_at: at,
            shutdown_at: in_shutdown.then_some(at),
        };
        let brokers = image.brokers().map(|b| (b.id, session(b.in_controlled_shutdown))).collect();
        Sessions { brokers, start_ms: now_ms, timeout_ms }
    }

    /// A broker registered, again or for the first time.
    pub(super) fn register(&mut self, broker: i32, now_ms: i64) {
        let session = Session {
            contact_ms: Some(now_ms),
            applied: -1,
            registered_at: i64::MAX,
            shutdown_at: None,
        };
        self.brokers.insert(broker, session);
    }

    /// A registered broker sent a heartbeat.
    pub(super) fn touch(&mut self, broker: i32, now_ms: i64, applied: i64) {
        if let Some(session) = self.brokers.get_mut(&broker) {
            session.contact_ms = Some(now_ms);
            session.applied = applied;
        }
    }

    /// Follows what the log says.
    pub(super) fn committed(&mut self, index: i64, records: &[MetadataRecord]) {
        for record in records {
            match record {
                MetadataRecord::RegisterBroker(broker) => {
                    if let Some(session) = self.brokers.get_mut(&broker.broker_id) {
                        session.registered_at = index;
                    }
                }
                MetadataRecord::BrokerChange(change) => {
                    let Some(session) = self.brokers.get_mut(&change.broker_id) else { continue };
                    match change.in_controlled_shutdown {
                        Some(true) => session.shutdown_at = session.shutdown_at.or(Some(index)),
                        Some(false) => session.shutdown_at = None,
                        None => {}
                    }
                }
                MetadataRecord::UnregisterBroker { broker_id, .. } => {
                    self.brokers.remove(broker_id);
                }
                _ => {}
            }
        }
    }

    /// Whether the broker was heard of by this controller, and lately.
    pub(super) fn is_valid(&self, broker: i32, now_ms: i64) -> bool {
        self.brokers
            .get(&broker)
            .and_then(|session| session.contact_ms)
            .is_some_and(|contact_ms| contact_ms.saturating_add(self.timeout_ms) >= now_ms)
    }

    /// When the broker must be fenced if nothing is heard of it.
    pub(super) fn deadline_ms(&self, broker: i32) -> i64 {
        let contact_ms = self.brokers.get(&broker).and_then(|session| session.contact_ms);
        let last_ms = contact_ms.unwrap_or(self.start_ms).max(self.start_ms);
        last_ms.saturating_add(self.timeout_ms).saturating_add(1)
    }

    /// Whether a broker that has applied this index knows of its own registration.
    pub(super) fn is_caught_up(&self, broker: i32, applied: i64) -> bool {
        self.brokers.get(&broker).is_some_and(|session| applied >= session.registered_at)
    }

    /// Whether all of `others` have applied what the broker's controlled shutdown changed.
    pub(super) fn shutdown_is_known(&self, broker: i32, others: impl Iterator<Item = i32>) -> bool {
        let begun = self.brokers.get(&broker).and_then(|session| session.shutdown_at);
        let applied = |id: i32| self.brokers.get(&id).map_or(-1, |session| session.applied);
        begun.is_some_and(|begun| others.map(applied).all(|applied| applied >= begun))
    }
}
