//! The command line. What the settings mean is `config`; running is `main.rs`.

use std::path::{Path, PathBuf};

use clap::Parser;

/// What follows the name of the program.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "gracchus",
    version,
    about = "A Kafka-compatible broker. Run it without arguments in an empty directory to start \
             one node.",
    after_help = EXAMPLES
)]
pub struct Arguments {
    /// Read settings from FILE, in the format of Kafka's server.properties
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The same as --config, as kafka-server-start takes it
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,

    /// Set one setting, whatever the file says; may be repeated
    #[arg(long = "override", value_name = "KEY=VALUE", value_parser = split_override)]
    pub overrides: Vec<(String, String)>,
}

impl Arguments {
    /// The file to read settings from, if one was given.
    pub fn config_file(&self) -> Option<&Path> {
        self.config.as_deref().or(self.file.as_deref())
    }
}

const EXAMPLES: &str = "\
Examples:
  gracchus                                        one node on 127.0.0.1:9092
  gracchus server.properties                      one node, or one of several
  gracchus --override log.dirs=/var/lib/gracchus --override num.partitions=3

First message, with kcat:
  echo hello | kcat -b 127.0.0.1:9092 -t greetings -P
  kcat -b 127.0.0.1:9092 -t greetings -C -e

Durability:
  A record is on disk before it is acknowledged. To leave flushing to the operating system, as
  Kafka does, set flush.messages=9223372036854775807 on a topic, or for all topics
  --override log.flush.interval.messages=9223372036854775807

Without settings, data go to ./gracchus-data, and metrics and health are on 127.0.0.1:9404.";

fn split_override(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("must look like KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests;
