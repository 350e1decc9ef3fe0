//! The on-disk differential: the same workload at Apache Kafka and at the broker under test, then
//! the files of both side by side.
//!
//! `workload` fills topics, in two stages with a clean stop between; what each left is read by
//! `differ::disk`. `dump` runs Kafka's own `DumpLogSegments` over the files, `exchange` lets each
//! broker open and serve the other's. `compat-tests/tests/on_disk.rs` puts them together.

pub mod dump;
pub mod exchange;
pub mod workload;

use std::path::{Path, PathBuf};

use crate::broker::Broker;
use crate::kafka::Kafka;

/// A broker of either make.
pub enum Side {
    Kafka(Kafka),
    Ours(Broker),
}

impl Side {
    /// A new Kafka that runs.
    pub fn kafka(jars: &Path, settings: &[(&str, &str)]) -> Side {
        let mut kafka = Kafka::new(jars, settings);
        kafka.start();
        Side::Kafka(kafka)
    }

    /// A new broker of ours that runs.
    pub fn ours(settings: &[(&str, &str)]) -> Side {
        Side::Ours(Broker::start(settings))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Side::Kafka(_) => "Kafka",
            Side::Ours(_) => "Gracchus",
        }
    }

    pub fn address(&self) -> &str {
        match self {
            Side::Kafka(kafka) => &kafka.address,
            Side::Ours(broker) => &broker.bootstrap,
        }
    }

    pub fn data_dir(&self) -> PathBuf {
        match self {
            Side::Kafka(kafka) => kafka.data_dir(),
            Side::Ours(broker) => broker.data_dir().to_owned(),
        }
    }

    /// A clean stop.
    pub fn stop(&mut self) {
        match self {
            Side::Kafka(kafka) => kafka.stop(),
            Side::Ours(broker) => broker.stop(),
        }
    }

    /// Starts it again on what it has.
    pub fn start(&mut self) {
        match self {
            Side::Kafka(kafka) => kafka.start(),
            Side::Ours(broker) => drop(broker.resume()),
        }
    }

    /// Warnings and errors in its log that name this.
    pub fn log_about(&self, name: &str) -> Vec<String> {
        let log = match self {
            Side::Kafka(kafka) => kafka.log_tail(usize::MAX),
            Side::Ours(broker) => broker.log_tail(usize::MAX),
        };
        let is_bad = |line: &&str| line.contains("WARN") || line.contains("ERROR");
        let lines = log.lines().filter(is_bad).filter(|line| line.contains(name));
        lines.map(str::to_owned).collect()
    }
}
