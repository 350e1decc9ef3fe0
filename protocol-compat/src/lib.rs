//! The wire and the record batch: everything that is bytes in Kafka's own formats.
//!
//! No I/O, no clocks, no tasks. Each module says what it owns.

pub mod batch;
pub mod compression;
pub mod consumer_protocol;
pub mod error;
pub mod frame;
pub mod group_records;
pub mod header;
pub mod hot;
pub mod ids;
pub mod later;
pub mod random;
mod rewrite;
pub mod schema;
pub mod shape;
pub mod versions;
pub mod wire;
