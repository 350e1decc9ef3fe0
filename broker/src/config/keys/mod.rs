//! The configuration table: every setting of Kafka 4.4 and our own, by subject.
//!
//! A broker setting `num.io.threads` is the constant `NUM_IO_THREADS` here; settings of topics,
//! groups and client-metrics subscriptions are in the modules of those names.

pub mod client_metrics;
pub mod group;
mod groups;
mod identity;
mod log;
mod metrics;
mod network;
mod own;
mod quotas;
mod replication;
mod security;
mod tiered;
pub mod topic;
mod transactions;

use std::sync::LazyLock;

use super::row::Row;

pub use self::groups::*;
pub use self::identity::*;
pub use self::log::*;
pub use self::metrics::*;
pub use self::network::*;
pub use self::own::*;
pub use self::quotas::*;
pub use self::replication::*;
pub use self::security::*;
pub use self::tiered::*;
pub use self::transactions::*;

/// The chapters of broker settings, with the title under which the generated page lists them.
pub static BROKER: [(&str, &[Row]); 11] = [
    ("Identity, roles and the metadata quorum", &identity::IDENTITY_ROWS),
    ("Network and requests", &network::NETWORK_ROWS),
    ("Logs and storage", &log::LOG_ROWS),
    ("Replication", &replication::REPLICATION_ROWS),
    ("Groups", &groups::GROUPS_ROWS),
    ("Transactions and producers", &transactions::TRANSACTIONS_ROWS),
    ("Quotas", &quotas::QUOTAS_ROWS),
    ("Security", &security::SECURITY_ROWS),
    ("Metrics", &metrics::METRICS_ROWS),
    ("Tiered storage", &tiered::TIERED_ROWS),
    ("Gracchus", &own::OWN_ROWS),
];

/// All broker settings, chapter by chapter.
pub fn broker_rows() -> impl Iterator<Item = &'static Row> {
    BROKER.iter().flat_map(|(_, rows)| rows.iter())
}

/// All broker settings by name.
static BY_NAME: LazyLock<Vec<&'static Row>> = LazyLock::new(|| {
    let mut rows: Vec<&'static Row> = broker_rows().collect();
    rows.sort_unstable_by_key(|row| row.name);
    rows
});

/// The broker setting of that name.
pub fn broker(name: &str) -> Option<&'static Row> {
    let at = BY_NAME.binary_search_by_key(&name, |row| row.name).ok()?;
    BY_NAME.get(at).copied()
}

/// The topic setting of that name.
pub fn topic_row(name: &str) -> Option<&'static Row> {
    topic::ROWS.iter().find(|row| row.name == name)
}

/// The group setting of that name.
pub fn group_row(name: &str) -> Option<&'static Row> {
    group::ROWS.iter().find(|row| row.name == name)
}

/// The client-metrics setting of that name.
pub fn client_metrics_row(name: &str) -> Option<&'static Row> {
    client_metrics::ROWS.iter().find(|row| row.name == name)
}
