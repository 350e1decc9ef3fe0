//! The first records of a fresh cluster.

use std::sync::Arc;

use super::features::FeatureTable;
use super::view::MIN_ISR;
use crate::image::ELR_FEATURE;
use crate::record::{ConfigRecord, ConfigResource, MetadataRecord};

/// The level each of these features gets in a fresh cluster: the highest there is, as Kafka 4.4
/// does.
pub fn default_levels(features: &FeatureTable) -> Vec<(Arc<str>, i16)> {
    features.iter().map(|(name, (_, max))| (name.clone(), *max)).collect()
}

/// The records that a fresh cluster begins with: finalized features (level 0 is left out) and, if
/// eligible leader replicas are among them, min.insync.replicas of the configuration file for the
/// whole cluster, where it can be changed from then on.
pub fn bootstrap_records(levels: &[(Arc<str>, i16)], min_isr: usize) -> Vec<MetadataRecord> {
    let finalized = levels.iter().filter(|(_, level)| *level != 0);
    let mut records: Vec<MetadataRecord> = finalized
        .clone()
        .map(|(name, level)| MetadataRecord::FeatureLevel { name: name.clone(), level: *level })
        .collect();
    if finalized.clone().any(|(name, _)| &**name == ELR_FEATURE) {
        records.push(MetadataRecord::Config(ConfigRecord {
            resource: ConfigResource::default_broker(),
            key: Arc::from(MIN_ISR),
            value: Some(Arc::from(min_isr.to_string())),
        }));
    }
    records
}
