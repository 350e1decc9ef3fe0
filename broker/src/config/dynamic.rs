//! The dynamic layer: one broker's settings and the cluster's defaults from the metadata log,
//! over the static file. Values that hold for brokers, topics, groups and subscriptions.
//!
//! What clients see of it is `describe.rs`; whether a change is allowed is `change.rs`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kraft::image::Configs;

use super::notice::{Notice, Place};
use super::row::{Row, Scope};
use super::typed::typed_access;
use super::value::{Value, elements};
use super::{Config, keys};

/// What holds on this broker now. Immutable: a change in the metadata log makes a new one.
#[derive(Clone)]
pub struct DynamicConfig {
    fixed: Arc<Config>,
    /// Defaults of the cluster, as written.
    cluster: Arc<Configs>,
    /// This broker's own, as written.
    broker: Arc<Configs>,
    /// Both together, read; the broker's own win.
    read: BTreeMap<&'static str, Value>,
}

typed_access!(DynamicConfig);

/// Names only: values may be secret.
impl fmt::Debug for DynamicConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.read.keys().copied().collect();
        let mut shown = out.debug_struct("DynamicConfig");
        shown.field("fixed", &self.fixed).field("read", &names).finish_non_exhaustive()
    }
}

/// The values that hold for one topic, group or client-metrics subscription.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceConfig {
    values: BTreeMap<&'static str, Value>,
}

typed_access!(ResourceConfig);

impl ResourceConfig {
    /// The value of a row of the resource's own table.
    pub fn value(&self, row: &'static Row) -> Option<&Value> {
        self.values.get(row.name)
    }
}

impl DynamicConfig {
    /// Puts dynamic settings over the static ones. What cannot be read or may not change while
    /// the broker runs is left out and told; the log may hold it from another version.
    pub fn new(
        fixed: Arc<Config>,
        cluster: Arc<Configs>,
        broker: Arc<Configs>,
    ) -> (DynamicConfig, Vec<Notice>) {
        let mut read = BTreeMap::new();
        let mut notices = Vec::new();
        for (key, text) in cluster.iter().chain(broker.iter()) {
            let Some(row) = keys::broker(key) else { continue };
            let complaint = match row.parse(text) {
                _ if row.scope == Scope::ReadOnly => {
                    "cannot change while the broker runs".to_owned()
                }
                Ok(value) => {
                    read.insert(row.name, value);
                    continue;
                }
                Err(bad) => bad.to_string(),
            };
            let text = format!("is ignored as a dynamic setting: {complaint}");
            notices.push(Notice { place: Place::Nowhere, key: row.name.to_owned(), text });
        }
        (DynamicConfig { fixed, cluster, broker, read }, notices)
    }

    /// Without dynamic settings.
    pub fn of(fixed: Arc<Config>) -> DynamicConfig {
        DynamicConfig::new(fixed, Arc::default(), Arc::default()).0
    }

    /// The static configuration below.
    pub fn fixed(&self) -> &Arc<Config> {
        &self.fixed
    }

    /// The cluster's dynamic defaults, as written.
    pub fn cluster(&self) -> &Configs {
        &self.cluster
    }

    /// This broker's dynamic settings, as written.
    pub fn broker(&self) -> &Configs {
        &self.broker
    }

    /// The value that holds for a row of the broker table.
    pub fn value(&self, row: &'static Row) -> Option<&Value> {
        self.read.get(row.name).or_else(|| self.fixed.value(row))
    }

    /// `max.connections.per.ip.overrides` as host and count.
    pub fn connection_overrides(&self) -> Vec<(String, i32)> {
        let text = self.string(keys::MAX_CONNECTIONS_PER_IP_OVERRIDES);
        super::check::connection_overrides(text).unwrap_or_default()
    }

    /// How long records are kept unless the topic says otherwise; -1 means for ever.
    pub fn retention_ms(&self) -> i64 {
        match self.default_of(keys::topic::RETENTION_MS.row) {
            Some(Value::Int(ms)) => ms,
            other => unreachable!("retention.ms is a whole number, not {other:?}"),
        }
    }

    /// What holds for a topic with these overrides.
    pub fn topic_config(&self, overrides: &Configs) -> ResourceConfig {
        self.resource(&keys::topic::ROWS, overrides)
    }

    /// What holds for a group with these overrides.
    pub fn group_config(&self, overrides: &Configs) -> ResourceConfig {
        self.resource(&keys::group::ROWS, overrides)
    }

    /// What holds for a client-metrics subscription with these settings.
    pub fn client_metrics_config(&self, overrides: &Configs) -> ResourceConfig {
        self.resource(&keys::client_metrics::ROWS, overrides)
    }

    /// An override that cannot be read counts as absent; writing one was refused.
    fn resource(&self, rows: &'static [Row], overrides: &Configs) -> ResourceConfig {
        let own = |row: &Row| overrides.get(row.name).and_then(|text| row.parse(text).ok());
        let pairs = rows.iter().filter_map(|row| {
            let value = own(row).or_else(|| self.default_of(row))?;
            Some((row.name, value))
        });
        ResourceConfig { values: pairs.collect() }
    }

    /// The default of a topic or group setting: the first broker setting behind it that has a
    /// value, in the unit of the row; else the built-in one.
    pub(super) fn default_of(&self, row: &'static Row) -> Option<Value> {
        let behind = row.broker.iter().find_map(|name| {
            let value = self.value(keys::broker(name)?)?;
            Some(in_milliseconds(name, value))
        });
        let value = behind.or_else(|| row.default.clone())?;
        if row.name == keys::group::STREAMS_ASSIGNOR_NAME.row.name {
            return Some(first_element(&value));
        }
        Some(value)
    }
}

/// Hours and minutes become milliseconds; any negative retention means for ever.
fn in_milliseconds(broker_name: &str, value: &Value) -> Value {
    let scale = match broker_name {
        name if name.ends_with(".hours") => 3_600_000,
        name if name.ends_with(".minutes") => 60_000,
        "log.retention.ms" => 1,
        _ => return value.clone(),
    };
    match value {
        Value::Int(count) if *count < 0 => Value::Int(-1),
        Value::Int(count) => Value::Int(count.saturating_mul(scale)),
        other => other.clone(),
    }
}

/// The first of the broker's assignors is the default of a group.
fn first_element(value: &Value) -> Value {
    let text = value.show();
    let first = elements(&text).next().unwrap_or("").to_owned();
    Value::Text(Cow::Owned(first))
}
