//! The scenarios that use a running broker, 1 to 7, 9 and 10; each gives the parts it measured.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::bulk::{self, Shape};
use crate::conn::Conn;
use crate::paced::{self, Outcome, Plan};
use crate::peer::Peer;
use crate::proc::{Mark, Taken, rss_mb};
use crate::scale::Scale;
use crate::stock::{self, Tools};
use crate::wire::{self, Codec, FetchLimits};

/// What one stretch of a scenario gave: named numbers, and how much the machine did beside.
pub struct Part {
    pub what: String,
    pub measures: Vec<(&'static str, f64)>,
    pub foreign: f64,
}

/// Whether an acknowledgement waits for the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// As the broker comes: Gracchus waits, Kafka does not.
    Default,
    /// By a setting of the topic, the same on either broker.
    FromCache,
    OnDisk,
}

impl Acks {
    fn config(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Acks::Default => &[],
            Acks::FromCache => &[("flush.messages", "9223372036854775807")],
            Acks::OnDisk => &[("flush.messages", "1")],
        }
    }

    fn text(self) -> &'static str {
        match self {
            Acks::Default => "acks as by default",
            Acks::FromCache => "acks from the page cache",
            Acks::OnDisk => "acks after fsync",
        }
    }
}

/// A running broker and the size of everything.
pub struct Bench<'a> {
    pub peer: &'a Peer,
    pub scale: &'a Scale,
    /// Apache Kafka's perf tools, where its jars are at hand.
    pub tools: Option<Tools>,
    /// Makes names of topics unique.
    pub topics: u32,
}

/// Which scenarios there are, in the order in which they run: thousands of files are made before
/// thousands are deleted.
pub const NUMBERS: [u8; 9] = [9, 1, 2, 3, 4, 5, 6, 7, 10];

impl Bench<'_> {
    /// Runs one scenario.
    pub fn run(&mut self, number: u8) -> Result<Vec<Part>> {
        match number {
            1 => self.bulk(),
            2 => self.small(),
            3 => self.paced_mixed(),
            4 => self.many_small(),
            5 => self.durable(),
            6 => self.fan_out(),
            7 => self.catch_up(),
            9 => self.partitions(),
            10 => self.connections(),
            other => anyhow::bail!("there is no scenario {other}"),
        }
    }

    /// Lets just-in-time compilers and caches get ready.
    pub fn warm_up(&mut self) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < self.scale.warm {
            let shape = self.shape(100, 16 << 10, Codec::None);
            let records = self.scale.records(500_000);
            let (topic, _) = self.topic(shape.partitions, Acks::FromCache)?;
            let written = bulk::produce(&self.peer.address, &topic, shape, records)?;
            bulk::consume(&self.peer.address, &topic, shape.partitions, written)?;
            self.gone(&topic)?;
            let plan = Plan { duration: Duration::from_secs(1), ..self.everyday(5) };
            self.paced(plan, Acks::FromCache, "warm-up")?;
        }
        Ok(())
    }

    fn topic(&mut self, partitions: i32, acks: Acks) -> Result<(String, Duration)> {
        self.topics += 1;
        let name = format!("bench-{}", self.topics);
        let begin = Instant::now();
        self.peer.connect()?.create_topic(&name, partitions, acks.config())?;
        Ok((name, begin.elapsed()))
    }

    fn gone(&self, topic: &str) -> Result<()> {
        self.peer.connect()?.delete_topic(topic)
    }

    fn shape(&self, value_bytes: usize, batch_bytes: usize, codec: Codec) -> Shape {
        Shape { partitions: 6, value_bytes, batch_bytes, codec }
    }

    /// 1: bulk, 1 KiB; written, and read back from the cache.
    fn bulk(&mut self) -> Result<Vec<Part>> {
        let shape = self.shape(1024, 128 << 10, Codec::None);
        let records = self.scale.records(1_400_000);
        let mut parts = self.write_and_read(shape, records, Acks::Default, "1 KiB")?;
        let relaxed = self.write_and_read(shape, records, Acks::FromCache, "1 KiB")?;
        parts.extend(relaxed.into_iter().take(1));
        parts.extend(self.stock(shape, records, "1 KiB")?);
        Ok(parts)
    }

    /// 2: small records, plain and compressed.
    fn small(&mut self) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for (codec, name) in
            [(Codec::None, "100 B"), (Codec::Lz4, "100 B, lz4"), (Codec::Zstd, "100 B, zstd")]
        {
            let shape = self.shape(100, 16 << 10, codec);
            let records = self.scale.records(10_000_000);
            parts.extend(self.write_and_read(shape, records, Acks::Default, name)?);
        }
        let shape = self.shape(100, 16 << 10, Codec::None);
        parts.extend(self.stock(shape, self.scale.records(5_000_000), "100 B")?);
        Ok(parts)
    }

    /// The same through clients that people use, with the settings that those come with.
    fn stock(&mut self, shape: Shape, records: u64, name: &str) -> Result<Vec<Part>> {
        let address = self.peer.address.clone();
        let (topic, _) = self.topic(shape.partitions, Acks::Default)?;
        let mark = Mark::now(self.peer.pid());
        stock::librdkafka_produce(&address, &topic, shape.value_bytes, records)?;
        let what = format!("librdkafka produces {name}");
        let mut parts = vec![self.moved(what, mark.taken(), records, shape)];
        let mark = Mark::now(self.peer.pid());
        stock::librdkafka_consume(&address, &topic, shape.partitions, records)?;
        parts.push(self.moved(format!("librdkafka reads {name}"), mark.taken(), records, shape));
        self.gone(&topic)?;
        let Some(tools) = self.tools.clone() else { return Ok(parts) };
        let (topic, _) = self.topic(shape.partitions, Acks::Default)?;
        // The tools say their rate; the time that Java takes to start is not the broker's.
        let at = |taken: Taken, rate: f64| Taken { wall_s: records as f64 / rate, ..taken };
        let mark = Mark::now(self.peer.pid());
        let rate = tools.produce(&address, &topic, shape.value_bytes, records)?;
        let what = format!("kafka-producer-perf-test, {name}");
        parts.push(self.moved(what, at(mark.taken(), rate), records, shape));
        let mark = Mark::now(self.peer.pid());
        let rate = tools.consume(&address, &topic, records)?;
        let what = format!("kafka-consumer-perf-test, {name}");
        parts.push(self.moved(what, at(mark.taken(), rate), records, shape));
        self.gone(&topic)?;
        Ok(parts)
    }

    fn write_and_read(
        &mut self,
        shape: Shape,
        records: u64,
        acks: Acks,
        name: &str,
    ) -> Result<Vec<Part>> {
        let (topic, _) = self.topic(shape.partitions, acks)?;
        let address = &self.peer.address;
        let mark = Mark::now(self.peer.pid());
        let written = bulk::produce(address, &topic, shape, records)?;
        let what = format!("produce {name}, {}", acks.text());
        let mut parts = vec![self.moved(what, mark.taken(), written, shape)];
        let mark = Mark::now(self.peer.pid());
        let seen = bulk::consume(address, &topic, shape.partitions, written)?;
        ensure!(seen == written, "{seen} records read, {written} acknowledged");
        parts.push(self.moved(format!("read {name}, cached"), mark.taken(), seen, shape));
        self.gone(&topic)?;
        Ok(parts)
    }

    fn moved(&self, what: String, taken: Taken, records: u64, shape: Shape) -> Part {
        let (records, bytes) = (records as f64, records as f64 * shape.value_bytes as f64);
        let measures = vec![
            ("MB/s", bytes / 1e6 / taken.wall_s),
            ("records/s", records / taken.wall_s),
            ("broker CPU s/GB", taken.broker_s / (bytes / 1e9)),
            ("broker CPU us/record", taken.broker_s * 1e6 / records),
            ("generator CPU us/record", taken.own_s * 1e6 / records),
            ("RSS MB", rss_mb(self.peer.pid())),
        ];
        Part { what, measures, foreign: taken.foreign }
    }

    /// 20,000 records of 1 KiB a second from four producers to four consumers.
    fn everyday(&self, linger_ms: u64) -> Plan {
        let rate = if linger_ms == 0 { 500.0 } else { 5_000.0 };
        Plan {
            producers: 4,
            rate,
            value_bytes: 1024,
            partitions: 12,
            linger: Duration::from_millis(linger_ms),
            consumers: 4,
            divided: true,
            duration: self.scale.paced,
        }
    }

    fn paced(&mut self, plan: Plan, acks: Acks, what: &str) -> Result<Part> {
        let (topic, _) = self.topic(plan.partitions, acks)?;
        let mark = Mark::now(self.peer.pid());
        let outcome = paced::run(&self.peer.address, &topic, plan)?;
        let part = self.timed(what.to_owned(), &mark.taken(), &outcome);
        self.gone(&topic)?;
        Ok(part)
    }

    fn timed(&self, what: String, taken: &Taken, outcome: &Outcome) -> Part {
        let ms = |histogram: &hdrhistogram::Histogram<u64>, quantile| {
            histogram.value_at_quantile(quantile) as f64 / 1000.0
        };
        let mut measures = vec![
            ("ack p50 ms", ms(&outcome.acked, 0.5)),
            ("ack p99 ms", ms(&outcome.acked, 0.99)),
            ("ack p99.9 ms", ms(&outcome.acked, 0.999)),
        ];
        if !outcome.seen.is_empty() {
            measures.extend([
                ("end to end p50 ms", ms(&outcome.seen, 0.5)),
                ("end to end p99 ms", ms(&outcome.seen, 0.99)),
                ("end to end p99.9 ms", ms(&outcome.seen, 0.999)),
                ("broker CPU us/delivery", taken.broker_s * 1e6 / outcome.delivered as f64),
            ]);
        }
        measures.extend([
            ("broker CPU us/record", taken.broker_s * 1e6 / outcome.records as f64),
            ("broker CPU us/request", taken.broker_s * 1e6 / outcome.requests as f64),
            ("RSS MB", rss_mb(self.peer.pid())),
        ]);
        Part { what, measures, foreign: taken.foreign }
    }

    /// 3: the everyday load, without and with linger.
    fn paced_mixed(&mut self) -> Result<Vec<Part>> {
        let slow = self.paced(self.everyday(0), Acks::Default, "2,000/s, linger 0")?;
        let fast = self.paced(self.everyday(5), Acks::Default, "20,000/s, linger 5 ms")?;
        Ok(vec![slow, fast])
    }

    /// 4: fifty producers whose records spread over a hundred partitions.
    fn many_small(&mut self) -> Result<Vec<Part>> {
        let plan = Plan { producers: 50, rate: 200.0, partitions: 100, ..self.everyday(5) };
        Ok(vec![self.paced(plan, Acks::Default, "50 producers x 200/s, 100 partitions")?])
    }

    /// 5: acknowledgements that wait for the disk, beside those that do not.
    fn durable(&mut self) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for acks in [Acks::FromCache, Acks::OnDisk] {
            let plan = Plan { rate: 2_500.0, ..self.everyday(5) };
            parts.push(self.paced(plan, acks, &format!("10,000/s, {}", acks.text()))?);
            let shape = Shape { partitions: 100, ..self.shape(100, 4 << 10, Codec::None) };
            let records =
                self.scale.records(if acks == Acks::OnDisk { 500_000 } else { 5_000_000 });
            let name = "100 B, 100 partitions, batches of 37";
            parts.extend(self.write_and_read(shape, records, acks, name)?.into_iter().take(1));
        }
        Ok(parts)
    }

    /// 6: many who read the tail of one partition.
    fn fan_out(&mut self) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for consumers in self.scale.consumers.iter().copied() {
            let plan = Plan {
                producers: 1,
                rate: 1_000.0,
                partitions: 1,
                consumers,
                divided: false,
                ..self.everyday(0)
            };
            let what = format!("1,000/s to {consumers} consumers");
            parts.push(self.paced(plan, Acks::Default, &what)?);
        }
        Ok(parts)
    }

    /// 7: a reader of a backlog beside a producer of 20 MB/s.
    fn catch_up(&mut self) -> Result<Vec<Part>> {
        let shape = self.shape(1024, 128 << 10, Codec::None);
        let (backlog, _) = self.topic(shape.partitions, Acks::Default)?;
        let address = self.peer.address.clone();
        let records = self.scale.records(1_200_000);
        let written = bulk::produce(&address, &backlog, shape, records)?;
        let (live, _) = self.topic(12, Acks::Default)?;
        let plan = Plan { consumers: 0, ..self.everyday(5) };
        let paced = {
            let (address, live) = (address.clone(), live.clone());
            std::thread::spawn(move || paced::run(&address, &live, plan))
        };
        // Past the part that the histogram leaves out.
        std::thread::sleep(Duration::from_millis(200) + self.scale.paced.mul_f64(0.25));
        let mark = Mark::now(self.peer.pid());
        let (mut read, begin) = (0, Instant::now());
        while read == 0 || begin.elapsed() < self.scale.paced.mul_f64(0.6) {
            read += bulk::consume(&address, &backlog, shape.partitions, written)?;
        }
        let reading = self.moved("read of a cached backlog".into(), mark.taken(), read, shape);
        let foreign = reading.foreign;
        let outcome = paced.join().map_err(|_| anyhow::anyhow!("the producer panicked"))??;
        let ms = |quantile| outcome.acked.value_at_quantile(quantile) as f64 / 1000.0;
        let measures = vec![("ack p50 ms", ms(0.5)), ("ack p99 ms", ms(0.99))];
        let what = "20,000/s beside the reader".to_owned();
        self.gone(&backlog)?;
        self.gone(&live)?;
        Ok(vec![reading, Part { what, measures, foreign }])
    }

    /// 9: the same load over more and more partitions.
    fn partitions(&mut self) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for partitions in self.scale.partitions.iter().copied() {
            let (topic, created) = self.topic(partitions, Acks::Default)?;
            let plan = Plan { partitions, rate: 1_250.0, ..self.everyday(5) };
            let mark = Mark::now(self.peer.pid());
            let outcome = paced::run(&self.peer.address, &topic, plan)?;
            let what = format!("5,000/s keyed over {partitions} partitions");
            let mut part = self.timed(what, &mark.taken(), &outcome);
            part.measures.push(("create ms", created.as_secs_f64() * 1e3));
            parts.push(part);
            self.gone(&topic)?;
        }
        Ok(parts)
    }

    /// 10: a hundred producers among connections that wait for records.
    fn connections(&mut self) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for idle in self.scale.idle_connections.iter().copied() {
            let (quiet, _) = self.topic(1, Acks::Default)?;
            let before_mb = rss_mb(self.peer.pid());
            let limits =
                FetchLimits { wait_ms: 600_000, bytes_min: 1 << 20, partition_bytes_max: 1 << 20 };
            let frame = wire::fetch(0, &quiet, &[(0, 0)], limits);
            let mut held: Vec<Conn> = Vec::new();
            for _ in 0..idle {
                let mut conn = self.peer.connect()?;
                conn.send(&frame)?;
                held.push(conn);
            }
            std::thread::sleep(Duration::from_millis(500));
            let grown_kb = (rss_mb(self.peer.pid()) - before_mb) * 1000.0;
            let plan = Plan {
                producers: 100,
                rate: 10.0,
                partitions: 12,
                consumers: 0,
                ..self.everyday(0)
            };
            let what = format!("100 producers x 10/s, {idle} connections idle");
            let mut part = self.paced(plan, Acks::Default, &what)?;
            if idle > 0 {
                part.measures.push(("RSS KB/idle connection", grown_kb / f64::from(idle)));
            }
            parts.push(part);
            drop(held);
            self.gone(&quiet)?;
        }
        Ok(parts)
    }
}
