//! Configuration: the table of all settings, the static file, the dynamic layer over it, and
//! what clients see and may change of both. Pure: reading the file is the caller's work.
//!
//! `keys` is the table; `Config::load` reads `server.properties`; `DynamicConfig` puts the
//! cluster's and the broker's dynamic settings over it and answers for topics and groups;
//! `describe` and `change` serve the admin APIs.

mod broker_change;
mod check;
mod client_match;
mod describe;
mod docs;
mod duration;
mod dynamic;
pub mod keys;
mod listener;
mod load;
mod notice;
mod properties;
pub mod row;
mod rules;
mod topic;
mod typed;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

pub use self::broker_change::{ROOT_LOGGER, check_logger_change};
pub use self::describe::{BROKER_LOGGER, Entry, Source, Synonym, Wanted, describe_loggers};
pub use self::docs::page;
pub use self::duration::parse_ms as parse_duration_ms;
pub use self::dynamic::{DynamicConfig, ResourceConfig};
pub use self::listener::{HostPort, Listener, Protocol, Voter, is_wildcard};
pub use self::load::Loaded;
pub use self::notice::{ConfigError, Notice, Place, Problem};
pub use self::row::{Key, Kind, Meaning, Row, Scope};
pub use self::topic::TopicSettings;
pub use self::value::{BadValue, Value, elements};

use self::typed::typed_access;

/// The static configuration of one node: what the file and the command line say, over the
/// defaults.
#[derive(Clone)]
pub struct Config {
    /// Known settings that were given, by name.
    set: BTreeMap<&'static str, Setting>,
    /// Keys that are not in the table, as written: plug-in settings, listener overrides.
    custom: BTreeMap<String, String>,
    node_id: i32,
    listeners: Vec<Listener>,
    advertised: Vec<Listener>,
    controller_names: Vec<String>,
    inter_broker: String,
    voters: Vec<Voter>,
    bootstrap: Vec<HostPort>,
    http: Option<HostPort>,
}

/// Names only: values may be secret.
impl fmt::Debug for Config {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.set.keys().copied().collect();
        let mut shown = out.debug_struct("Config");
        shown.field("node_id", &self.node_id).field("set", &names).finish_non_exhaustive()
    }
}

/// A setting that was given: as written, and as read.
#[derive(Clone)]
struct Setting {
    raw: String,
    value: Value,
}

/// Which parts a node plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    pub broker: bool,
    pub controller: bool,
}

typed_access!(Config);

impl Config {
    /// Reads a file (its name is for messages only) and `key=value` overrides that win over it.
    ///
    /// # Errors
    /// All that is wrong at once: values that cannot be read or are out of bounds, settings
    /// that contradict each other. An unknown key is only a notice, as in Kafka.
    pub fn load(
        file: Option<(&str, &str)>,
        overrides: &[(String, String)],
    ) -> Result<Loaded, ConfigError> {
        load::load(file, overrides)
    }

    /// The configuration of a node about which nothing was said.
    pub fn defaults() -> Config {
        match Config::load(None, &[]) {
            Ok(loaded) => loaded.config,
            Err(error) => unreachable!("the defaults are refused: {error}"),
        }
    }

    /// The value that holds for a row of the broker table.
    pub fn value(&self, row: &'static Row) -> Option<&Value> {
        self.set.get(row.name).map(|setting| &setting.value).or(row.default.as_ref())
    }

    /// Whether the settings would agree with each other if these values held.
    ///
    /// # Errors
    /// The first thing that is wrong.
    fn check_with(
        &self,
        values: impl Iterator<Item = (&'static str, Value)>,
    ) -> Result<(), String> {
        let mut set = self.set.clone();
        set.extend(values.map(|(name, value)| {
            let raw = value.show();
            (name, Setting { raw, value })
        }));
        let problem = check::problems(set, self.custom.clone()).into_iter().next();
        problem.map_or(Ok(()), |problem| Err(problem.to_string()))
    }

    /// Whether the file or the command line gives the setting.
    pub fn is_set(&self, row: &Row) -> bool {
        self.set.contains_key(row.name)
    }

    /// The text given for any key, known or not.
    pub fn raw(&self, name: &str) -> Option<&str> {
        let known = self.set.get(name).map(|setting| setting.raw.as_str());
        known.or_else(|| self.custom.get(name).map(String::as_str))
    }

    /// Keys outside the table that were given, with their texts, in order.
    pub fn custom(&self) -> impl Iterator<Item = (&str, &str)> {
        self.custom.iter().map(|(key, text)| (key.as_str(), text.as_str()))
    }

    /// `node.id`, or `broker.id` where only that is given.
    pub fn node_id(&self) -> i32 {
        self.node_id
    }

    /// `process.roles`.
    pub fn roles(&self) -> Roles {
        let roles = self.list(keys::PROCESS_ROLES);
        Roles { broker: roles.contains(&"broker"), controller: roles.contains(&"controller") }
    }

    /// All listeners, those of the controller included.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// The listeners for clients and brokers.
    pub fn broker_listeners(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().filter(|listener| !self.is_controller_listener(&listener.name))
    }

    /// The listeners of the metadata quorum; none on a node that is alone and unconfigured.
    pub fn controller_listeners(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().filter(|listener| self.is_controller_listener(&listener.name))
    }

    /// What clients and brokers are told to connect to. An empty host stands for the address
    /// by which the asking client came, port 0 for the port that was bound.
    pub fn advertised_listeners(&self) -> impl Iterator<Item = &Listener> {
        self.advertised.iter().filter(|listener| !self.is_controller_listener(&listener.name))
    }

    /// What other members of the quorum are told to connect to.
    pub fn advertised_controllers(&self) -> impl Iterator<Item = &Listener> {
        self.advertised.iter().filter(|listener| self.is_controller_listener(&listener.name))
    }

    /// Whether `controller.listener.names` has the name.
    pub fn is_controller_listener(&self, name: &str) -> bool {
        self.controller_names.iter().any(|known| known == name)
    }

    /// The listener on which brokers talk to each other.
    pub fn inter_broker_listener(&self) -> &str {
        &self.inter_broker
    }

    /// `controller.quorum.voters`; empty when the node is alone or asks bootstrap servers.
    pub fn voters(&self) -> &[Voter] {
        &self.voters
    }

    /// `controller.quorum.bootstrap.servers`.
    pub fn bootstrap_servers(&self) -> &[HostPort] {
        &self.bootstrap
    }

    /// `log.dirs`, else `log.dir`; never empty.
    pub fn log_dirs(&self) -> Vec<PathBuf> {
        let dirs = self.opt_list(keys::LOG_DIRS).unwrap_or_else(|| self.list(keys::LOG_DIR));
        dirs.into_iter().map(PathBuf::from).collect()
    }

    /// `metadata.log.dir`, else the first of the log directories.
    pub fn metadata_dir(&self) -> PathBuf {
        match self.opt_string(keys::METADATA_LOG_DIR) {
            Some(dir) => PathBuf::from(dir),
            None => self.log_dirs().swap_remove(0),
        }
    }

    /// `http.listen`; `None` when it is switched off.
    pub fn http_listen(&self) -> Option<&HostPort> {
        self.http.as_ref()
    }

    /// How many replicas an internal topic gets. What is set holds; unset, the default of
    /// three shrinks to the number of brokers, so that a node alone needs no settings.
    pub fn internal_replication(&self, key: Key<row::Short>, brokers: usize) -> i16 {
        let wanted = self.short(key);
        if self.is_set(key.row) {
            return wanted;
        }
        wanted.min(i16::try_from(brokers).unwrap_or(i16::MAX)).max(1)
    }
}

#[cfg(test)]
mod tests;
