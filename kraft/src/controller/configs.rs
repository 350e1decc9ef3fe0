//! AlterConfigs and IncrementalAlterConfigs: what becomes of the overrides of a resource.
//!
//! A resource changes whole or not at all; its neighbours in the request do not matter. Which keys
//! and values are good is the broker's [`super::ConfigRules`].

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use protocol_compat::error::ErrorCode;

use super::duplicates;
use super::names::check_name;
use super::request::{
    AlterConfigs, AlteredResource, ChangedResource, ConfigOp, IncrementalAlterConfigs, Refusal,
    ReplacedResource,
};
use super::topics::{RECORDS_MAX, too_large};
use super::view::{MIN_ISR, View};
use crate::image::Configs;
use crate::record::{ConfigRecord, ConfigResource, MetadataRecord, ResourceKind};

/// The longest config value, in bytes.
const VALUE_MAX: usize = i16::MAX as usize;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// Records that set all of these overrides.
pub(super) fn config_records<'a>(
    resource: &'a ConfigResource,
    configs: &'a Configs,
) -> impl Iterator<Item = MetadataRecord> + 'a {
    configs.iter().map(|(key, value)| config_record(resource, key, Some(value)))
}

fn config_record(
    resource: &ConfigResource,
    key: &Arc<str>,
    value: Option<&Arc<str>>,
) -> MetadataRecord {
    let (resource, key, value) = (resource.clone(), key.clone(), value.cloned());
    MetadataRecord::Config(ConfigRecord { resource, key, value })
}

/// Refuses values that are too long to keep.
pub(super) fn check_values(configs: &Configs) -> Result<(), Refusal> {
    if configs.iter().all(|(key, value)| key.len().max(value.len()) <= VALUE_MAX) {
        return Ok(());
    }
    let text = format!(
        "The configuration value cannot be added because it exceeds the maximum value size of \
         {VALUE_MAX} bytes."
    );
    Err(Refusal::new(ErrorCode::InvalidConfig, text))
}

impl View<'_> {
    pub(super) fn alter_configs(
        self,
        request: &AlterConfigs,
    ) -> (Vec<MetadataRecord>, Vec<AlteredResource>) {
        let names = request.resources.iter().map(|r| (r.kind, r.name.as_str()));
        self.alter_all(names, request.validate_only, |at| {
            self.replace_configs(&request.resources[at])
        })
    }

    pub(super) fn incremental_alter_configs(
        self,
        request: &IncrementalAlterConfigs,
    ) -> (Vec<MetadataRecord>, Vec<AlteredResource>) {
        let names = request.resources.iter().map(|r| (r.kind, r.name.as_str()));
        self.alter_all(names, request.validate_only, |at| {
            self.change_configs(&request.resources[at])
        })
    }

    fn alter_all<'n>(
        self,
        resources: impl Iterator<Item = (i8, &'n str)> + Clone,
        validate_only: bool,
        alter: impl Fn(usize) -> Result<Vec<MetadataRecord>, Refusal>,
    ) -> (Vec<MetadataRecord>, Vec<AlteredResource>) {
        let twice = duplicates(resources.clone());
        let mut records = Vec::new();
        let results = resources.enumerate().map(|(at, (kind, name))| {
            let result = if twice.contains(&(kind, name)) {
                let text = "Each resource must appear at most once.";
                Err(Refusal::new(ErrorCode::InvalidRequest, text))
            } else {
                alter(at).map(|made| records.extend(made))
            };
            AlteredResource { kind, name: name.to_string(), result }
        });
        let mut reply: Vec<AlteredResource> = results.collect();
        if records.len() > RECORDS_MAX {
            records.clear();
            reply.iter_mut().for_each(|resource| resource.result = Err(too_large()));
        }
        if validate_only {
            records.clear();
        }
        (records, reply)
    }

    /// Records that make `ask` the whole set of overrides.
    fn replace_configs(self, ask: &ReplacedResource) -> Result<Vec<MetadataRecord>, Refusal> {
        check_keys(ask.configs.iter().map(|(key, value)| (key.as_str(), value.is_none())))?;
        let resource = resource(ask.kind, &ask.name)?;
        let before = self.overrides(&resource);
        let mut after = Configs::new();
        let mut touched = BTreeSet::new();
        for (key, value) in &ask.configs {
            let key: Arc<str> = key.as_str().into();
            touched.insert(key.clone());
            after.extend(value.as_deref().map(|value| (key, Arc::from(value))));
        }
        touched.extend(before.keys().cloned());
        self.finish(&resource, &before, &after, &touched)
    }

    /// Records that do what `ask` says to the overrides there are.
    fn change_configs(self, ask: &ChangedResource) -> Result<Vec<MetadataRecord>, Refusal> {
        let null = |op: &ConfigOp| op.op != DELETE && op.value.is_none();
        check_keys(ask.ops.iter().map(|op| (op.key.as_str(), null(op))))?;
        let resource = resource(ask.kind, &ask.name)?;
        let before = self.overrides(&resource);
        let mut after = before.clone();
        let mut touched = BTreeSet::new();
        for op in &ask.ops {
            let key: Arc<str> = op.key.as_str().into();
            touched.insert(key.clone());
            match self.new_value(&resource, op, before.get(&key))? {
                Some(value) => after.insert(key, value.into()),
                None => after.remove(&key),
            };
        }
        self.finish(&resource, &before, &after, &touched)
    }

    /// The value of a key after one operation; `None` = no override.
    fn new_value(
        self,
        resource: &ConfigResource,
        op: &ConfigOp,
        before: Option<&Arc<str>>,
    ) -> Result<Option<String>, Refusal> {
        let value = op.value.as_deref().unwrap_or_default();
        let name = match op.op {
            SET => return Ok(Some(value.to_string())),
            DELETE => return Ok(None),
            APPEND => "APPEND",
            SUBTRACT => "SUBTRACT",
            unknown => {
                let text = format!("Unknown config operation {unknown} for {}", op.key);
                return Err(Refusal::new(ErrorCode::InvalidRequest, text));
            }
        };
        let Some(default) = self.settings.rules.list_default(resource.kind, &op.key) else {
            let text = format!("Can't {name} to key {} because its type is not LIST.", op.key);
            return Err(Refusal::new(ErrorCode::InvalidConfig, text));
        };
        let start = before.map_or(default.as_str(), |value| value);
        let mut items: Vec<&str> = start.split(',').filter(|item| !item.is_empty()).collect();
        for item in value.split(',') {
            let at = items.iter().position(|there| *there == item);
            match (op.op, at) {
                (APPEND, None) => items.push(item),
                (SUBTRACT, Some(at)) => {
                    items.remove(at);
                }
                _ => {}
            }
        }
        Ok(Some(items.join(",")))
    }

    /// Checks the overrides as they would be and turns what differs into records.
    fn finish(
        self,
        resource: &ConfigResource,
        before: &Configs,
        after: &Configs,
        touched: &BTreeSet<Arc<str>>,
    ) -> Result<Vec<MetadataRecord>, Refusal> {
        self.check_min_isr(resource, after, touched)?;
        check_values(after)?;
        self.check_configs(resource, after, before)?;
        if resource.kind == ResourceKind::Topic && self.image.topic(&resource.name).is_none() {
            let text = format!("The topic '{}' does not exist.", resource.name);
            return Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, text));
        }
        // Brokers take a repeated value as a wish to read files again (certificates; KAFKA-14136).
        let always = resource.kind == ResourceKind::Broker;
        let mut records: Vec<MetadataRecord> = touched
            .iter()
            .filter(|key| {
                let (old, new) = (before.get(*key), after.get(*key));
                old != new || (always && new.is_some())
            })
            .map(|key| config_record(resource, key, after.get(key)))
            .collect();
        if before.get(MIN_ISR) != after.get(MIN_ISR) && self.elr() {
            records.extend(self.void_elr(resource));
        }
        Ok(records)
    }

    /// With another minimum the high watermark may move without the eligible replicas, so they are
    /// eligible no more.
    fn void_elr(self, resource: &ConfigResource) -> Option<MetadataRecord> {
        match resource.kind {
            ResourceKind::Topic => {
                Some(MetadataRecord::ClearElr { topic: Some(resource.name.clone()) })
            }
            ResourceKind::Broker => Some(MetadataRecord::ClearElr { topic: None }),
            ResourceKind::ClientMetrics | ResourceKind::Group => None,
        }
    }

    /// With ELR on all controllers must agree on min.insync.replicas: brokers may not differ, and
    /// the cluster's value must stay (KIP-966).
    fn check_min_isr(
        self,
        resource: &ConfigResource,
        after: &Configs,
        touched: &BTreeSet<Arc<str>>,
    ) -> Result<(), Refusal> {
        if !self.elr() || resource.kind != ResourceKind::Broker || !touched.contains(MIN_ISR) {
            return Ok(());
        }
        let text = if !resource.name.is_empty() {
            format!("Broker-level {MIN_ISR} cannot be altered while ELR is enabled.")
        } else if !after.contains_key(MIN_ISR) {
            format!("Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.")
        } else {
            return Ok(());
        };
        Err(Refusal::new(ErrorCode::InvalidConfig, text))
    }

    /// Asks the broker's rules.
    pub(super) fn check_configs(
        self,
        resource: &ConfigResource,
        after: &Configs,
        before: &Configs,
    ) -> Result<(), Refusal> {
        let checked = self.settings.rules.check(resource, after, before);
        checked.map_err(|(code, text)| Refusal::new(code, text))
    }
}

/// Refuses keys that come twice and values that are null (`keys` says so beside each key).
fn check_keys<'k>(keys: impl Iterator<Item = (&'k str, bool)> + Clone) -> Result<(), Refusal> {
    if !duplicates(keys.clone().map(|(key, _)| key)).is_empty() {
        let text = "Error due to duplicate config keys";
        return Err(Refusal::new(ErrorCode::InvalidRequest, text));
    }
    let nulls: Vec<&str> = keys.filter(|(_, null)| *null).map(|(key, _)| key).collect();
    if nulls.is_empty() {
        return Ok(());
    }
    let text = format!("Null value not supported for : {}", nulls.join(","));
    Err(Refusal::new(ErrorCode::InvalidRequest, text))
}

/// The resource of this kind and name, if there can be one.
fn resource(kind: i8, name: &str) -> Result<ConfigResource, Refusal> {
    let refuse = |text| Err(Refusal::new(ErrorCode::InvalidRequest, text));
    let Some(known) = ResourceKind::from_code(kind) else {
        return refuse(format!("Unknown resource type {kind}"));
    };
    match known {
        ResourceKind::Topic if name.is_empty() => {
            return refuse("Default topic resources are not allowed.".into());
        }
        ResourceKind::Group if name.is_empty() => {
            return refuse("Default group resources are not allowed.".into());
        }
        ResourceKind::ClientMetrics if name.is_empty() => {
            return refuse("Default client metrics resources are not allowed.".into());
        }
        ResourceKind::Broker
            if !name.is_empty() && !name.parse::<i32>().is_ok_and(|id| id >= 0) =>
        {
            return refuse(format!("Node id must be an integer, but it is: {name}"));
        }
        ResourceKind::Topic => check_name(name)?,
        _ => {}
    }
    Ok(ConfigResource::new(known, name))
}
