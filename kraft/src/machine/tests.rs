//! Tests of the shard with a machine small enough to see through: named counters with an expiry.
