//! The feature levels that this program works with: what ApiVersions calls supported. Only what is
//! implemented is here; the levels of group, transaction, share and streams protocols join with
//! them.

use std::sync::Arc;

use kraft::controller::FeatureTable;
use kraft::record::FeatureRange;

/// One feature, and the levels known.
pub struct Feature {
    pub name: &'static str,
    pub min_level: i16,
    pub max_level: i16,
}

/// In alphabetical order.
pub const SUPPORTED: [Feature; 3] = [
    Feature { name: "eligible.leader.replicas.version", min_level: 0, max_level: 1 },
    Feature { name: "kraft.version", min_level: 0, max_level: 1 },
    Feature { name: "metadata.version", min_level: 7, max_level: 33 },
];

/// The same for a broker's registration.
pub fn ranges() -> Vec<FeatureRange> {
    let ranges = SUPPORTED.iter().map(|feature| FeatureRange {
        name: Arc::from(feature.name),
        min_level: feature.min_level,
        max_level: feature.max_level,
    });
    ranges.collect()
}

/// The same for the controller, which finalizes them.
pub fn table() -> FeatureTable {
    SUPPORTED
        .iter()
        .map(|feature| (Arc::from(feature.name), (feature.min_level, feature.max_level)))
        .collect()
}
