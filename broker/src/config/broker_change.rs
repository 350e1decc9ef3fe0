//! What a broker checks before a change of its own settings, or of the cluster's defaults,
//! goes to the controller: may they change, can they be read, does the sum of all still work.
//!
//! All settings are checked as they would be afterwards. Loggers, which only this broker
//! knows, are here as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kraft::controller::{ConfigOp, Refusal};
use kraft::image::Configs;
use protocol_compat::error::ErrorCode;

use super::dynamic::DynamicConfig;
use super::keys;
use super::notice::clip;
use super::row::{Int, Key, Kind, Row};
use super::rules::broker_setting;
use super::value::elements;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// Thread counts at most double or halve in one change.
const THREADS: [Key<Int>; 9] = [
    keys::BACKGROUND_THREADS,
    keys::LOG_CLEANER_THREADS,
    keys::NUM_IO_THREADS,
    keys::NUM_NETWORK_THREADS,
    keys::NUM_RECOVERY_THREADS_PER_DATA_DIR,
    keys::NUM_REPLICA_FETCHERS,
    keys::REMOTE_LOG_MANAGER_COPIER_THREAD_POOL_SIZE,
    keys::REMOTE_LOG_MANAGER_EXPIRATION_THREAD_POOL_SIZE,
    keys::REMOTE_LOG_READER_THREADS,
];

impl DynamicConfig {
    /// IncrementalAlterConfigs for a broker resource; an empty name is the cluster's default.
    ///
    /// # Errors
    /// INVALID_CONFIG for append and subtract on what is no list, INVALID_REQUEST else.
    pub fn check_broker_change(&self, name: &str, ops: &[ConfigOp]) -> Result<(), Refusal> {
        let null = |op: &ConfigOp| op.op != DELETE && op.value.is_none();
        check_keys(ops.iter().map(|op| (op.key.as_str(), null(op))))?;
        self.own_resource(name)?;
        let mut after = self.overrides(name).clone();
        for op in ops {
            let value = op.value.as_deref().unwrap_or_default();
            let value = match op.op {
                SET => Some(value.to_owned()),
                DELETE => None,
                APPEND | SUBTRACT => Some(self.edited_list(&after, op, value)?),
                other => return Err(invalid(format!("{}: no operation {other}", op.key))),
            };
            match value {
                Some(value) => after.insert(op.key.as_str().into(), value.into()),
                None => after.remove(op.key.as_str()),
            };
        }
        let set = ops.iter().filter(|op| op.op != DELETE).map(|op| op.key.as_str());
        self.check_after(name, after, &set.collect())
    }

    /// AlterConfigs for a broker resource: `configs` become all the overrides there are.
    ///
    /// # Errors
    /// INVALID_REQUEST.
    pub fn check_broker_replacement(
        &self,
        name: &str,
        configs: &[(String, Option<String>)],
    ) -> Result<(), Refusal> {
        check_keys(configs.iter().map(|(key, value)| (key.as_str(), value.is_none())))?;
        self.own_resource(name)?;
        let pair = |(key, value): &(String, Option<String>)| {
            Some((Arc::from(key.as_str()), Arc::from(value.as_deref()?)))
        };
        let after: Configs = configs.iter().filter_map(pair).collect();
        self.check_after(name, after, &configs.iter().map(|(key, _)| key.as_str()).collect())
    }

    fn overrides(&self, name: &str) -> &Configs {
        if name.is_empty() { self.cluster() } else { self.broker() }
    }

    fn own_resource(&self, name: &str) -> Result<(), Refusal> {
        if name.is_empty() { Ok(()) } else { own_node(name, self.fixed().node_id()) }
    }

    /// The list after one append or subtract, from the override or else the default.
    fn edited_list(&self, now: &Configs, op: &ConfigOp, value: &str) -> Result<String, Refusal> {
        let Some(row) = keys::broker(&op.key).filter(|row| row.kind == Kind::List) else {
            let text = format!("{}: only lists can be appended to or subtracted from", op.key);
            return Err(refuse(ErrorCode::InvalidConfig, text));
        };
        let default = row.default_text().unwrap_or_default();
        let start = now.get(op.key.as_str()).map_or(default.as_str(), |text| text);
        let mut kept: Vec<&str> = elements(start).collect();
        for element in value.split(',').map(str::trim) {
            kept.retain(|old| *old != element || op.op == APPEND);
            if op.op == APPEND && !kept.contains(&element) {
                kept.push(element);
            }
        }
        Ok(kept.join(","))
    }

    /// Whether the broker works with these overrides; `set` are the keys that were given.
    fn check_after(&self, name: &str, after: Configs, set: &BTreeSet<&str>) -> Result<(), Refusal> {
        for (key, text) in after.iter().filter(|(key, _)| set.contains(&***key)) {
            broker_setting(name.is_empty(), key, text)
                .map_err(|(code, text)| refuse(code, text))?;
        }
        let (cluster, broker) = if name.is_empty() {
            (Arc::new(after), Arc::new(self.broker().clone()))
        } else {
            (Arc::new(self.cluster().clone()), Arc::new(after))
        };
        let (next, _) = DynamicConfig::new(self.fixed().clone(), cluster, broker);
        next.check_sum().map_err(invalid)?;
        for key in THREADS {
            let (old, new) = (self.int(key), next.int(key));
            if new != old && !(old / 2..=old.saturating_mul(2)).contains(&new) {
                let text = format!("may at most halve or double at once, and {old} holds now");
                return Err(invalid(format!("{}={new}: {text}", key.row.name)));
            }
        }
        Ok(())
    }

    /// The checks of a start, on what would hold; the error is the first thing that is wrong.
    fn check_sum(&self) -> Result<(), String> {
        let dynamic = |row: &&'static Row| {
            self.cluster().contains_key(row.name) || self.broker().contains_key(row.name)
        };
        let values = keys::broker_rows().filter(dynamic).filter_map(|row| {
            let value = self.value(row)?;
            Some((row.name, value.clone()))
        });
        self.fixed().check_with(values)
    }
}

/// The levels that a logger may have.
const LEVELS: [&str; 6] = ["DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN"];

/// The logger that all others follow unless they have a level of their own.
pub const ROOT_LOGGER: &str = "root";

/// What a change of broker loggers comes to: the new level of each, `None` to follow the root
/// again. `known` are the loggers there are. Nothing of it is kept over a restart.
///
/// # Errors
/// INVALID_CONFIG for an unknown logger or level, INVALID_REQUEST else.
pub fn check_logger_change(
    known: &BTreeMap<String, String>,
    node_id: i32,
    name: &str,
    ops: &[ConfigOp],
) -> Result<Vec<(String, Option<String>)>, Refusal> {
    let null = |op: &ConfigOp| op.op != DELETE && op.value.is_none();
    check_keys(ops.iter().map(|op| (op.key.as_str(), null(op))))?;
    own_node(name, node_id)?;
    let mut changes = Vec::new();
    for op in ops {
        if !matches!(op.op, SET | DELETE) {
            return Err(invalid(format!("{}: a level can only be set or deleted", op.key)));
        }
        if !known.contains_key(&op.key) {
            let text = format!("there is no logger {}", op.key);
            return Err(refuse(ErrorCode::InvalidConfig, text));
        }
        if op.op == DELETE && op.key == ROOT_LOGGER {
            return Err(invalid("the level of the root logger cannot be deleted"));
        }
        let level = op.value.clone().filter(|_| op.op == SET);
        if let Some(level) = level.as_ref().filter(|level| !LEVELS.contains(&level.as_str())) {
            let text = format!("{}={level}: must be one of {}", op.key, LEVELS.join(", "));
            return Err(refuse(ErrorCode::InvalidConfig, text));
        }
        changes.push((op.key.clone(), level));
    }
    Ok(changes)
}

/// Refuses keys that come twice and values that are null; `keys` says so beside each key.
fn check_keys<'k>(keys: impl Iterator<Item = (&'k str, bool)>) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    let mut nulls = Vec::new();
    for (key, null) in keys {
        if !seen.insert(key) {
            return Err(invalid(format!("{key} is given twice")));
        }
        if null {
            nulls.push(key);
        }
    }
    if nulls.is_empty() {
        return Ok(());
    }
    Err(invalid(format!("{} must have a value", nulls.join(", "))))
}

fn own_node(name: &str, node_id: i32) -> Result<(), Refusal> {
    match name.parse::<i32>() {
        Ok(id) if id == node_id => Ok(()),
        Ok(id) => Err(invalid(format!("broker {node_id} changes its own settings, not {id}'s"))),
        Err(_) => Err(invalid(format!("the broker id must be a whole number, not {name:?}"))),
    }
}

fn invalid(text: impl Into<String>) -> Refusal {
    refuse(ErrorCode::InvalidRequest, text.into())
}

fn refuse(code: ErrorCode, text: String) -> Refusal {
    Refusal::new(code, clip(text))
}
