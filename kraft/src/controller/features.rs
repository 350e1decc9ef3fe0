//! UpdateFeatures: at which levels features are finalized for the whole cluster.
//!
//! A level must be known to this program, to every registered broker, and may go down only when
//! asked for as a downgrade. All updates of a request happen or none does.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol_compat::error::ErrorCode;

use super::configs::config_records;
use super::request::{FeatureUpdate, Refusal, UpdateFeatures};
use super::view::{MIN_ISR, View};
use crate::image::{Configs, ELR_FEATURE, METADATA_FEATURE};
use crate::record::{ConfigRecord, ConfigResource, MetadataRecord, ResourceKind};

/// Lowest and highest level of each feature that a program can finalize, by name. Lists only what
/// is implemented: what is not here cannot be switched on.
pub type FeatureTable = BTreeMap<Arc<str>, (i16, i16)>;

/// The level of the voter set that is kept in the log.
const KRAFT_FEATURE: &str = "kraft.version";
/// ELR needs records that came with this metadata.version (4.0-IV1).
const ELR_NEEDS_METADATA: i16 = 23;
/// Levels of metadata.version that changed records; going down across one would lose metadata.
const RECORDS_CHANGED_AT: [i16; 11] = [7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33];

const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;
const UNSAFE_DOWNGRADE: i8 = 3;

/// The ranges of Apache Kafka 4.4, for a program that implements all of them.
pub fn kafka_features() -> FeatureTable {
    let table = [
        (ELR_FEATURE, (0, 1)),
        ("group.version", (0, 1)),
        (KRAFT_FEATURE, (0, 1)),
        (METADATA_FEATURE, (7, 33)),
        ("share.version", (0, 2)),
        ("streams.version", (0, 1)),
        ("transaction.version", (0, 2)),
    ];
    table.into_iter().map(|(name, range)| (Arc::from(name), range)).collect()
}

impl View<'_> {
    pub(super) fn update_features(
        self,
        request: &UpdateFeatures,
    ) -> (Vec<MetadataRecord>, Result<(), Refusal>) {
        let updates: BTreeMap<&str, &FeatureUpdate> =
            request.updates.iter().map(|update| (update.name.as_str(), update)).collect();
        let mut records = Vec::new();
        for update in updates.values() {
            if let Err(why) = self.check_update(update, &updates) {
                let text = format!(
                    "The update failed for all features since the following feature had an error: \
                     {why}"
                );
                return (Vec::new(), Err(Refusal::new(ErrorCode::InvalidUpdateVersion, text)));
            }
            let (name, level) = (Arc::from(update.name.as_str()), update.level);
            if level == self.image.feature(&update.name) {
                continue;
            }
            records.push(MetadataRecord::FeatureLevel { name, level });
            if update.name == ELR_FEATURE && level >= 1 {
                records.extend(self.settle_min_isr());
            }
        }
        if request.validate_only {
            records.clear();
        }
        (records, Ok(()))
    }

    /// Why an update cannot be; the texts are Kafka's.
    fn check_update(
        self,
        update: &FeatureUpdate,
        all: &BTreeMap<&str, &FeatureUpdate>,
    ) -> Result<(), String> {
        let FeatureUpdate { name, level, upgrade_type } = update;
        let invalid =
            |why: String| Err(format!("Invalid update version {level} for feature {name}. {why}"));
        if ![UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE].contains(upgrade_type) {
            return invalid("The controller does not support the given upgrade type.".into());
        }
        if *level < 0 {
            return invalid("A feature version cannot be less than 0.".into());
        }
        if let Some(why) = self.unsupported(name, *level) {
            return invalid(why);
        }
        let current = self.image.feature(name);
        if *level < current && *upgrade_type == UPGRADE {
            return invalid(
                "Can't downgrade the version of this feature without setting the upgrade type to \
                 either safe or unsafe downgrade."
                    .into(),
            );
        }
        if *level > current && *upgrade_type != UPGRADE {
            return invalid("Can't downgrade to a newer version.".into());
        }
        if *level < current && name == KRAFT_FEATURE {
            return invalid("Can't downgrade the version of this feature.".into());
        }
        if name == METADATA_FEATURE {
            return check_metadata_downgrade(current, *level, *upgrade_type);
        }
        let metadata = all
            .get(METADATA_FEATURE)
            .map_or_else(|| self.image.feature(METADATA_FEATURE), |update| update.level);
        if name == ELR_FEATURE && *level >= 1 && metadata < ELR_NEEDS_METADATA {
            return invalid(format!(
                "{name} could not be set to {level} because it depends on {METADATA_FEATURE} level \
                 {ELR_NEEDS_METADATA}"
            ));
        }
        Ok(())
    }

    /// Which node cannot work at this level, in Kafka's words.
    fn unsupported(self, name: &str, level: i16) -> Option<String> {
        let judge = |who: String, range: Option<(i16, i16)>| match range {
            Some((min, max)) if (min..=max).contains(&level) => None,
            Some((min, max)) if max > 0 => {
                Some(format!("{who} only supports versions {min}-{max}"))
            }
            _ => Some(format!("{who} does not support this feature.")),
        };
        let local = self.settings.features.get(name).copied();
        let local = judge(format!("Local controller {}", self.settings.node_id), local);
        local.or_else(|| {
            self.image.brokers().find_map(|broker| {
                let range = broker.features.iter().find(|feature| &*feature.name == name);
                let range = range.map(|feature| (feature.min_level, feature.max_level));
                // Switching off what a broker never heard of is fine.
                let range = range.or((level == 0).then_some((0, 0)));
                judge(format!("Broker {}", broker.id), range)
            })
        })
    }

    /// ELR wants one min.insync.replicas for the cluster, and none on single brokers.
    fn settle_min_isr(self) -> Vec<MetadataRecord> {
        let default = ConfigResource::default_broker();
        let mut records = Vec::new();
        if self.image.config(&default, MIN_ISR).is_none() {
            let value = self.settings.min_isr.to_string();
            let configs = Configs::from([(Arc::from(MIN_ISR), Arc::from(value))]);
            records.extend(config_records(&default, &configs));
        }
        for (resource, configs) in self.image.all_configs() {
            let broker = resource.kind == ResourceKind::Broker && !resource.name.is_empty();
            if broker && configs.contains_key(MIN_ISR) {
                let (resource, key) = (resource.clone(), Arc::from(MIN_ISR));
                records.push(MetadataRecord::Config(ConfigRecord { resource, key, value: None }));
            }
        }
        records
    }
}

fn check_metadata_downgrade(current: i16, level: i16, upgrade_type: i8) -> Result<(), String> {
    let crossed = |changed: &i16| level < *changed && *changed <= current;
    if !RECORDS_CHANGED_AT.iter().any(crossed) {
        return Ok(());
    }
    let why = if upgrade_type == UNSAFE_DOWNGRADE {
        "Unsafe metadata downgrade is not supported in this version."
    } else {
        "Refusing to perform the requested downgrade because it might delete metadata information."
    };
    Err(format!("Unsupported {METADATA_FEATURE} downgrade from {current} to {level}. {why}"))
}
