//! What DescribeConfigs shows: values, where they come from, and the ladder behind them.
//!
//! The order of sources and the odd corners (a ladder that begins with another name is dropped,
//! raw texts in the lower rungs) are those of Kafka's `ConfigHelper`, seen on 4.4.

use std::collections::{BTreeMap, BTreeSet};

use kraft::controller::Refusal;
use kraft::image::{Configs, Image};
use kraft::record::{ConfigResource, ResourceKind};
use protocol_compat::error::ErrorCode;
use protocol_compat::ids::valid_topic_name;

use super::dynamic::{DynamicConfig, ResourceConfig};
use super::keys;
use super::notice::clip;
use super::row::{Kind, Row, Scope};

/// The number of a broker logger among resource types; it keeps nothing in the metadata log.
pub const BROKER_LOGGER: i8 = 8;

/// Where a value comes from, as DescribeConfigs numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum Source {
    Topic = 1,
    Broker = 2,
    Cluster = 3,
    Static = 4,
    Default = 5,
    Logger = 6,
    ClientMetrics = 7,
    Group = 8,
}

impl Source {
    /// The number on the wire.
    pub fn code(self) -> i8 {
        self as i8
    }
}

/// One config of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// `None` for null values and for everything sensitive.
    pub value: Option<String>,
    pub read_only: bool,
    pub source: Source,
    pub sensitive: bool,
    /// The whole ladder, strongest first; empty unless wanted.
    pub synonyms: Vec<Synonym>,
    pub kind: Kind,
    /// `None` unless wanted and known.
    pub doc: Option<String>,
}

/// One rung of the ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    pub name: String,
    pub value: Option<String>,
    pub source: Source,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// Empty: all.
    pub names: &'a [String],
    pub synonyms: bool,
    pub docs: bool,
}

impl Wanted<'_> {
    fn has(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

impl DynamicConfig {
    /// The answer for one resource, sorted by name. `kind` is the number of the protocol.
    ///
    /// # Errors
    /// What Kafka answers for names that are malformed, unknown or another broker's.
    pub fn describe(
        &self,
        kind: i8,
        name: &str,
        image: &Image,
        loggers: &BTreeMap<String, String>,
        wanted: Wanted<'_>,
    ) -> Result<Vec<Entry>, Refusal> {
        if kind == BROKER_LOGGER {
            own_node(name, self.fixed().node_id(), false)?;
            return Ok(describe_loggers(loggers, wanted));
        }
        let Some(kind) = ResourceKind::from_code(kind) else {
            return Err(invalid("this resource type cannot be described"));
        };
        let stored = image.configs(&ConfigResource::new(kind, name));
        let stored = stored.map_or_else(Default::default, |configs| (**configs).clone());
        match kind {
            ResourceKind::Topic => {
                valid_topic_name(name)
                    .map_err(|why| Refusal::new(ErrorCode::InvalidTopicException, why))?;
                if image.topic(name).is_none() {
                    return Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, ""));
                }
                Ok(self.describe_topic(&stored, wanted))
            }
            ResourceKind::Broker if name.is_empty() => Ok(self.describe_cluster(wanted)),
            ResourceKind::Broker => {
                own_node(name, self.fixed().node_id(), true)?;
                Ok(self.describe_broker(wanted))
            }
            ResourceKind::Group | ResourceKind::ClientMetrics if name.is_empty() => {
                Err(invalid("the name must not be empty"))
            }
            ResourceKind::Group => Ok(self.describe_group(&stored, wanted)),
            ResourceKind::ClientMetrics => Ok(self.describe_client_metrics(&stored, wanted)),
        }
    }

    /// All that holds on this broker, keys outside the table included.
    pub fn describe_broker(&self, wanted: Wanted<'_>) -> Vec<Entry> {
        let mut names: BTreeSet<&str> =
            keys::broker_rows().filter(|row| self.is_shown(row)).map(|row| row.name).collect();
        names.extend(self.fixed().custom().map(|(name, _)| name));
        names.extend(self.cluster().keys().chain(self.broker().keys()).map(|key| &**key));
        names.retain(|name| wanted.has(name));
        names.into_iter().map(|name| self.broker_entry(name, wanted)).collect()
    }

    /// The cluster's dynamic defaults alone, with their texts as written.
    pub fn describe_cluster(&self, wanted: Wanted<'_>) -> Vec<Entry> {
        let shown = self.cluster().iter().filter(|(name, _)| wanted.has(name));
        let entry = |(name, text): (&std::sync::Arc<str>, &std::sync::Arc<str>)| {
            let base = base_row(name);
            let sensitive = base.is_none_or(Row::sensitive);
            let value = (!sensitive).then(|| text.to_string());
            let rung =
                Synonym { name: name.to_string(), value: value.clone(), source: Source::Cluster };
            Entry {
                name: name.to_string(),
                value,
                read_only: is_read_only(name),
                source: Source::Cluster,
                sensitive,
                synonyms: if wanted.synonyms { vec![rung] } else { Vec::new() },
                kind: base.map_or(Kind::Unknown, |row| row.kind),
                doc: exact_doc(name, wanted),
            }
        };
        shown.map(entry).collect()
    }

    /// A topic with these overrides.
    pub fn describe_topic(&self, overrides: &Configs, wanted: Wanted<'_>) -> Vec<Entry> {
        let config = self.topic_config(overrides);
        self.describe_rows(&keys::topic::ROWS, &config, overrides, Source::Topic, wanted)
    }

    /// A group with these overrides; it need not exist.
    pub fn describe_group(&self, overrides: &Configs, wanted: Wanted<'_>) -> Vec<Entry> {
        let config = self.group_config(overrides);
        self.describe_rows(&keys::group::ROWS, &config, overrides, Source::Group, wanted)
    }

    /// A client-metrics subscription; it need not exist.
    pub fn describe_client_metrics(&self, stored: &Configs, wanted: Wanted<'_>) -> Vec<Entry> {
        let config = self.client_metrics_config(stored);
        let source = Source::ClientMetrics;
        self.describe_rows(&keys::client_metrics::ROWS, &config, stored, source, wanted)
    }

    /// Internal settings show only while somebody sets them, dynamic-only ones likewise.
    fn is_shown(&self, row: &Row) -> bool {
        let quiet = row.internal || row.scope == Scope::DynamicOnly;
        !quiet || self.fixed().is_set(row)
    }

    fn broker_entry(&self, name: &str, wanted: Wanted<'_>) -> Entry {
        let exact = keys::broker(name);
        let base = exact.or_else(|| base_row(name));
        let sensitive = base.is_none_or(Row::sensitive);
        let mut ladder = self.ladder(name, sensitive);
        let value = match exact {
            _ if sensitive => None,
            Some(row) if row.scope != Scope::DynamicOnly => self.shown_value(row),
            _ => ladder.first().and_then(|rung| rung.value.clone()),
        };
        let source = ladder.first().map_or(Source::Default, |rung| rung.source);
        if !wanted.synonyms {
            ladder.clear();
        }
        Entry {
            name: name.to_owned(),
            value,
            read_only: is_read_only(name),
            source,
            sensitive,
            synonyms: ladder,
            kind: base.map_or(Kind::Unknown, |row| row.kind),
            doc: exact_doc(name, wanted),
        }
    }

    fn shown_value(&self, row: &'static Row) -> Option<String> {
        if is_node_id(row.name) {
            return Some(self.fixed().node_id().to_string());
        }
        self.value(row).map(super::Value::show)
    }

    /// Everything that says something about a broker setting, strongest first. Kafka collects
    /// by source, then drops what precedes the first rung of the setting's own name.
    fn ladder(&self, name: &str, sensitive: bool) -> Vec<Synonym> {
        let names = broker_names(name);
        let mut rungs = Vec::new();
        let mut add = |name: &str, value: Option<String>, source| {
            if let Some(text) = value {
                let value = (!sensitive).then_some(text);
                rungs.push(Synonym { name: name.to_owned(), value, source });
            }
        };
        for name in &names {
            add(name, self.broker().get(*name).map(|text| text.to_string()), Source::Broker);
        }
        for name in &names {
            add(name, self.cluster().get(*name).map(|text| text.to_string()), Source::Cluster);
        }
        for name in &names {
            add(name, self.static_text(name), Source::Static);
        }
        for name in &names {
            add(name, self.default_text(name), Source::Default);
        }
        rungs.into_iter().skip_while(|rung| rung.name != name).collect()
    }

    /// Kafka has no default for its required settings; ours shows only where it holds.
    fn default_text(&self, name: &str) -> Option<String> {
        let row = keys::broker(name).filter(|row| row.scope != Scope::DynamicOnly)?;
        let required = REQUIRED_BY_KAFKA.contains(&name) && self.static_text(name).is_some();
        if required { None } else { row.default_text() }
    }

    /// As written; the two names of the node id stand for each other.
    fn static_text(&self, name: &str) -> Option<String> {
        let fixed = self.fixed();
        let known = fixed.is_set(keys::NODE_ID.row) || fixed.is_set(keys::BROKER_ID.row);
        if is_node_id(name) && known {
            return Some(fixed.node_id().to_string());
        }
        fixed.raw(name).map(str::to_owned)
    }

    fn describe_rows(
        &self,
        rows: &'static [Row],
        config: &ResourceConfig,
        overrides: &Configs,
        own: Source,
        wanted: Wanted<'_>,
    ) -> Vec<Entry> {
        let shown = |row: &&Row| {
            let quiet = row.internal && !overrides.contains_key(row.name);
            !quiet && wanted.has(row.name)
        };
        let mut entries: Vec<Entry> = rows
            .iter()
            .filter(shown)
            .map(|row| {
                let value = config.value(row).map(super::Value::show);
                let mut ladder = self.resource_ladder(row);
                if overrides.contains_key(row.name) {
                    let name = row.name.to_owned();
                    ladder.insert(0, Synonym { name, value: value.clone(), source: own });
                }
                let source = ladder.first().map_or(Source::Default, |rung| rung.source);
                if !wanted.synonyms {
                    ladder.clear();
                }
                Entry {
                    name: row.name.to_owned(),
                    value,
                    read_only: false,
                    source,
                    sensitive: false,
                    synonyms: ladder,
                    kind: row.kind,
                    doc: wanted.docs.then(|| row.long_doc()),
                }
            })
            .collect();
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        entries
    }

    /// The ladder of the first broker setting behind a row. Some group settings name one that
    /// no broker has; its only rung is the default.
    fn resource_ladder(&self, row: &'static Row) -> Vec<Synonym> {
        let Some(name) = row.broker.first() else { return Vec::new() };
        if keys::broker(name).is_some() {
            return self.ladder(name, false);
        }
        let value = row.default_text();
        vec![Synonym { name: (*name).to_owned(), value, source: Source::Default }]
    }
}

/// Settings that Kafka starts without only if they are given; Gracchus has defaults for them.
const REQUIRED_BY_KAFKA: [&str; 3] = ["controller.listener.names", "node.id", "process.roles"];

/// Every logger with its level.
pub fn describe_loggers(levels: &BTreeMap<String, String>, wanted: Wanted<'_>) -> Vec<Entry> {
    let shown = levels.iter().filter(|(name, _)| wanted.has(name));
    let entry = |(name, level): (&String, &String)| Entry {
        name: name.clone(),
        value: Some(level.clone()),
        read_only: false,
        source: Source::Logger,
        sensitive: false,
        synonyms: Vec::new(),
        kind: Kind::Unknown,
        doc: Some(String::new()),
    };
    shown.map(entry).collect()
}

/// Refuses names that are not this node's id.
fn own_node(name: &str, node_id: i32, empty_too: bool) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(invalid("the broker id must not be empty"));
    }
    match name.parse::<i32>() {
        Ok(id) if id == node_id => Ok(()),
        Ok(id) => {
            let or = if empty_too { " or an empty name" } else { "" };
            Err(invalid(format!("broker {node_id} answers for itself{or}, not for {id}")))
        }
        Err(_) => Err(invalid(format!("the broker id must be a whole number, not {name:?}"))),
    }
}

fn invalid(text: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, clip(text.into()))
}

fn is_node_id(name: &str) -> bool {
    name == keys::NODE_ID.row.name || name == keys::BROKER_ID.row.name
}

/// The setting itself and those that stand in for it, strongest first.
fn broker_names(name: &str) -> Vec<&str> {
    if let Some(row) = base_row(name).filter(|row| row.name != name) {
        return vec![name, row.name];
    }
    let behind = keys::topic::ROWS.iter().map(|row| row.broker).filter(|names| names.len() > 1);
    match behind.into_iter().find(|names| names.contains(&name)) {
        Some(names) => names.to_vec(),
        None => vec![name],
    }
}

/// Settings that are written per SASL mechanism, `listener.name.LISTENER.MECHANISM.NAME`.
const PER_MECHANISM: [&str; 5] = [
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
];

/// The row of a setting, or of the setting behind a listener's own one.
pub(super) fn base_row(name: &str) -> Option<&'static Row> {
    let Some((_, base)) = name.strip_prefix("listener.name.").and_then(|r| r.split_once('.'))
    else {
        return keys::broker(name);
    };
    let mechanism = PER_MECHANISM.iter().find(|known| base.ends_with(**known));
    keys::broker(mechanism.unwrap_or(&base))
}

/// Whether a change needs a restart; true of everything that is not in the table.
fn is_read_only(name: &str) -> bool {
    keys::broker(name).is_none_or(|row| row.scope == Scope::ReadOnly)
}

/// Only defined keys have a sentence; dynamic-only ones have none in Kafka.
fn exact_doc(name: &str, wanted: Wanted<'_>) -> Option<String> {
    let row = keys::broker(name).filter(|row| row.scope != Scope::DynamicOnly)?;
    wanted.docs.then(|| row.long_doc())
}
