//! Black-box suites: they know only the built binary and the protocol's clients.
//!
//! `broker` runs the binary, `client` is the small talk with librdkafka, `records` and `checker`
//! say whether an acknowledged record survived, `load` writes such records while things break,
//! `image` is a file system of its own that can lose its power or run full.
//! `differ` compares answers with those of Apache Kafka, `on_disk` the files that both leave and
//! whether each serves the other's; `kafka` is a Kafka that a test starts and stops.

pub mod broker;
pub mod checker;
pub mod client;
pub mod differ;
pub mod image;
pub mod incremental;
pub mod kafka;
pub mod load;
pub mod on_disk;
pub mod records;
pub mod settings;
