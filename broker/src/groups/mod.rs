//! Consumer groups: the coordinator over `__consumer_offsets`.
