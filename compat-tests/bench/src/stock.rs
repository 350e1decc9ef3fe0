//! The clients that people use, as they come: librdkafka, and the perf tools of Apache Kafka.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};

use crate::bulk::half_random;

/// No record for so long is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts what was acknowledged and what was not.
#[derive(Clone, Default)]
struct Delivered {
    good: Arc<AtomicU64>,
    bad: Arc<AtomicU64>,
}

impl ClientContext for Delivered {}

impl ProducerContext for Delivered {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let counter = if result.is_ok() { &self.good } else { &self.bad };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// librdkafka writes `records` records, with its default settings.
pub fn librdkafka_produce(
    address: &str,
    topic: &str,
    value_bytes: usize,
    records: u64,
) -> Result<()> {
    let delivered = Delivered::default();
    let producer: ThreadedProducer<Delivered> = ClientConfig::new()
        .set("bootstrap.servers", address)
        .create_with_context(delivered.clone())?;
    let value = half_random(value_bytes, 1);
    for _ in 0..records {
        let mut record = BaseRecord::<(), [u8]>::to(topic).payload(&value);
        while let Err((error, refused)) = producer.send(record) {
            let full = error == KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull);
            ensure!(full, "librdkafka refused a record: {error}");
            record = refused;
            thread::sleep(Duration::from_millis(1));
        }
    }
    producer.flush(PATIENCE)?;
    let [good, bad] = [&delivered.good, &delivered.bad].map(|count| count.load(Ordering::Relaxed));
    ensure!(good == records, "{good} of {records} records acknowledged, {bad} failed");
    Ok(())
}

/// librdkafka reads `records` records from the start, with its default settings.
pub fn librdkafka_consume(address: &str, topic: &str, partitions: i32, records: u64) -> Result<()> {
    let consumer: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", address).set("group.id", "bench").create()?;
    let mut from = TopicPartitionList::new();
    for partition in 0..partitions {
        from.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&from)?;
    let (mut seen, mut last) = (0, Instant::now());
    while seen < records {
        match consumer.poll(Duration::from_millis(100)) {
            Some(record) => {
                record?;
                (seen, last) = (seen + 1, Instant::now());
            }
            None => ensure!(last.elapsed() < PATIENCE, "{seen} of {records} records came"),
        }
    }
    Ok(())
}

/// Apache Kafka's own perf tools, in processes of their own.
#[derive(Clone)]
pub struct Tools {
    /// A directory of Kafka's jars.
    pub jars: PathBuf,
}

impl Tools {
    /// kafka-producer-perf-test with its default settings; records a second, as it says.
    pub fn produce(
        &self,
        address: &str,
        topic: &str,
        value_bytes: usize,
        records: u64,
    ) -> Result<f64> {
        let (bytes, records) = (value_bytes.to_string(), records.to_string());
        let said = self.run(
            "ProducerPerformance",
            &[
                "--bootstrap-server",
                address,
                "--topic",
                topic,
                "--record-size",
                &bytes,
                "--num-records",
                &records,
                "--throughput",
                "-1",
            ],
        )?;
        producer_rate(&said, &records).with_context(|| format!("kafka-producer-perf-test: {said}"))
    }

    /// kafka-consumer-perf-test with its default settings; records a second, as it says, without
    /// the time that joining the group took.
    pub fn consume(&self, address: &str, topic: &str, records: u64) -> Result<f64> {
        let count = records.to_string();
        let said = self.run(
            "ConsumerPerformance",
            &[
                "--bootstrap-server",
                address,
                "--topic",
                topic,
                "--num-records",
                &count,
                "--hide-header",
            ],
        )?;
        let (seen, rate) =
            consumer_rate(&said).with_context(|| format!("kafka-consumer-perf-test: {said}"))?;
        ensure!(seen >= records, "kafka-consumer-perf-test: {seen} of {records} records came");
        Ok(rate)
    }

    fn run(&self, class: &str, arguments: &[&str]) -> Result<String> {
        let done = Command::new("java")
            // As Kafka's own scripts have it.
            .args(["-Xmx512M", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-cp"])
            .arg(format!("{}/*", self.jars.display()))
            .arg(format!("org.apache.kafka.tools.{class}"))
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .context("java")?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        if !done.status.success() {
            bail!("{class}: {said}{}", String::from_utf8_lossy(&done.stderr));
        }
        Ok(said)
    }
}

/// Out of `1000 records sent, 5000.0 records/sec (4.88 MB/sec), ...`, the line over the whole run.
fn producer_rate(said: &str, records: &str) -> Option<f64> {
    let whole = said.lines().rev().find_map(|line| line.strip_prefix(records));
    whole?.strip_prefix(" records sent, ")?.split_once(' ')?.0.parse().ok()
}

/// Records and records a second out of `start, end, MB, MB/s, records, records/s, rebalance ms,
/// fetch ms, fetch MB/s, fetch records/s`.
fn consumer_rate(said: &str) -> Option<(u64, f64)> {
    let fields: Vec<&str> =
        said.lines().map(|line| line.split(", ").collect()).find(|all: &Vec<_>| all.len() == 10)?;
    Some((fields[4].parse().ok()?, fields[9].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_say_is_understood() {
        let said = "24001 records sent, 4800.2 records/sec (4.69 MB/sec), 9.1 ms avg latency\n\
                    50000 records sent, 9999.5 records/sec (9.77 MB/sec), 3.1 ms avg latency\n";
        assert_eq!(producer_rate(said, "50000"), Some(9999.5));
        assert_eq!(producer_rate(said, "60000"), None);
        let said = "2026-01-01 00:00:00:000, 2026-01-01 00:00:04:000, 48.8, 12.2, 50000, 12500.0, \
                    3210, 790, 61.8, 63291.1\n";
        assert_eq!(consumer_rate(said), Some((50000, 63291.1)));
        assert_eq!(consumer_rate("no records"), None);
    }
}
