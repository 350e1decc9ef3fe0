//! Short words for what every test says to librdkafka. Nothing here judges a broker.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, ConfigResource, NewPartitions, NewTopic,
    ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, Headers, Message, OwnedHeaders, Timestamp};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::{ClientContext, Offset, TopicPartitionList};

/// What any call may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The configuration every client starts from.
pub fn base(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap).set("client.id", "compat-tests");
    // A restarted broker is looked for at once.
    config.set("reconnect.backoff.ms", "20").set("reconnect.backoff.max.ms", "200");
    config
}

fn with(bootstrap: &str, settings: &[(&str, &str)]) -> ClientConfig {
    let mut config = base(bootstrap);
    for (key, value) in settings {
        config.set(*key, *value);
    }
    config
}

/// The code in an error, whatever call it came from.
pub fn code(error: &KafkaError) -> RDKafkaErrorCode {
    error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail)
}

/// A record to be sent.
#[derive(Clone, Debug, Default)]
pub struct Rec {
    topic: String,
    partition: Option<i32>,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    timestamp: Option<i64>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Rec {
    pub fn to(topic: &str) -> Rec {
        Rec { topic: topic.to_owned(), ..Rec::default() }
    }

    pub fn partition(mut self, partition: i32) -> Rec {
        self.partition = Some(partition);
        self
    }

    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Rec {
        self.key = Some(key.into());
        self
    }

    pub fn value(mut self, value: impl Into<Vec<u8>>) -> Rec {
        self.value = Some(value.into());
        self
    }

    pub fn timestamp(mut self, timestamp_ms: i64) -> Rec {
        self.timestamp = Some(timestamp_ms);
        self
    }

    pub fn header(mut self, key: &str, value: Option<&[u8]>) -> Rec {
        self.headers.push((key.to_owned(), value.map(<[u8]>::to_vec)));
        self
    }
}

/// How one send ended: partition and offset, or the refusal.
pub type Delivery = Result<(i32, i64), RDKafkaErrorCode>;

/// Remembers deliveries by the order of sending.
#[derive(Default)]
pub struct Deliveries(Arc<Mutex<Vec<Option<Delivery>>>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, at: usize) {
        let delivery = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(code(error)),
        };
        // The opaque of 0 would be a null pointer, so they count from 1.
        self.0.lock().expect("not poisoned")[at - 1] = Some(delivery);
    }
}

/// A producer that tells what became of each record.
pub struct Sender {
    pub producer: BaseProducer<Deliveries>,
    deliveries: Arc<Mutex<Vec<Option<Delivery>>>>,
}

impl Sender {
    pub fn new(bootstrap: &str, settings: &[(&str, &str)]) -> Sender {
        let context = Deliveries::default();
        let deliveries = Arc::clone(&context.0);
        let config = with(bootstrap, settings);
        let producer = config.create_with_context(context).expect("no producer");
        Sender { producer, deliveries }
    }

    /// Queues a record; refused at once only by librdkafka itself.
    pub fn send(&self, rec: &Rec) -> Result<(), RDKafkaErrorCode> {
        let at = {
            let mut deliveries = self.deliveries.lock().expect("not poisoned");
            deliveries.push(None);
            deliveries.len()
        };
        let mut headers = None;
        for (key, value) in &rec.headers {
            let all: OwnedHeaders = headers.take().unwrap_or_default();
            headers = Some(all.insert(Header { key, value: value.as_ref() }));
        }
        let sent = self.producer.send(BaseRecord {
            topic: &rec.topic,
            partition: rec.partition,
            payload: rec.value.as_ref(),
            key: rec.key.as_ref(),
            timestamp: rec.timestamp,
            headers,
            delivery_opaque: at,
        });
        sent.map_err(|(error, _)| {
            self.deliveries.lock().expect("not poisoned").pop();
            code(&error)
        })
    }

    /// Waits for all that was sent; what became of it, in the order of sending.
    pub fn flush(&self) -> Vec<Delivery> {
        self.producer.flush(PATIENCE).expect("not all records were answered");
        let all = std::mem::take(&mut *self.deliveries.lock().expect("not poisoned"));
        all.into_iter().map(|one| one.expect("flush waits for every delivery")).collect()
    }

    /// Waits for all that was sent; panics unless all arrived.
    pub fn arrive(&self) {
        for delivery in self.flush() {
            delivery.expect("a record was refused");
        }
    }

    /// Sends one record and waits for it.
    pub fn send_one(&self, rec: &Rec) -> Delivery {
        self.send(rec)?;
        self.flush().pop().expect("one was sent")
    }

    /// Sends values to one partition; panics unless all arrive.
    pub fn fill(&self, topic: &str, partition: i32, values: impl IntoIterator<Item = String>) {
        for value in values {
            self.send(&Rec::to(topic).partition(partition).value(value)).expect("queue is full");
        }
        self.arrive();
    }
}

/// A record that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub timestamp: Timestamp,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Got {
    pub fn of(message: &impl Message) -> Got {
        let headers = message.headers().map(|headers| {
            let all = headers.iter();
            all.map(|one| (one.key.to_owned(), one.value.map(<[u8]>::to_vec))).collect()
        });
        Got {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            timestamp: message.timestamp(),
            headers: headers.unwrap_or_default(),
        }
    }

    /// The value as text; tests that use it write text.
    pub fn text(&self) -> String {
        let value = self.value.clone().unwrap_or_default();
        String::from_utf8(value).expect("the value is no text")
    }
}

/// A consumer of `group`; its offsets start at the earliest unless settings say otherwise.
pub fn consumer(bootstrap: &str, group: &str, settings: &[(&str, &str)]) -> BaseConsumer {
    let mut config = base(bootstrap);
    config.set("group.id", group).set("auto.offset.reset", "earliest");
    config.set("enable.auto.commit", "false").set("fetch.wait.max.ms", "50");
    config.set("session.timeout.ms", "6000").set("heartbeat.interval.ms", "200");
    for (key, value) in settings {
        config.set(*key, *value);
    }
    config.create().expect("no consumer")
}

/// A consumer of one partition from `from`, without a group's life.
pub fn assigned(bootstrap: &str, topic: &str, partition: i32, from: Offset) -> BaseConsumer {
    let consumer = consumer(bootstrap, "compat-tests-unused", &[]);
    assign(&consumer, &[(topic, partition, from)]);
    consumer
}

pub fn assign(consumer: &BaseConsumer, places: &[(&str, i32, Offset)]) {
    consumer.assign(&list(places)).expect("cannot assign");
}

/// A list of partitions and offsets.
pub fn list(places: &[(&str, i32, Offset)]) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    for (topic, partition, offset) in places {
        list.add_partition_offset(topic, *partition, *offset).expect("a bad offset");
    }
    list
}

/// Polls until `count` records came; panics when they do not.
pub fn poll(consumer: &BaseConsumer, count: usize) -> Vec<Got> {
    let deadline = Instant::now() + PATIENCE;
    let mut all = Vec::new();
    while all.len() < count {
        assert!(Instant::now() < deadline, "{} of {count} records came", all.len());
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => all.push(Got::of(&message)),
            Some(Err(error)) if is_passing(&error) => {}
            Some(Err(error)) => panic!("poll: {error}"),
            None => {}
        }
    }
    all
}

/// Polls for a while; whatever came.
pub fn poll_for(consumer: &BaseConsumer, time: Duration) -> Vec<Got> {
    let deadline = Instant::now() + time;
    let mut all = Vec::new();
    while Instant::now() < deadline {
        match consumer.poll(Duration::from_millis(20)) {
            Some(Ok(message)) => all.push(Got::of(&message)),
            Some(Err(error)) if is_passing(&error) => {}
            Some(Err(error)) => panic!("poll: {error}"),
            None => {}
        }
    }
    all
}

/// The first error that polling gives.
pub fn poll_error(consumer: &BaseConsumer) -> RDKafkaErrorCode {
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "no error came");
        if let Some(Err(error)) = consumer.poll(Duration::from_millis(100))
            && !is_passing(&error)
        {
            return code(&error);
        }
    }
}

/// Errors that librdkafka tells of and mends itself.
fn is_passing(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        code(error),
        Code::BrokerTransportFailure | Code::AllBrokersDown | Code::OperationTimedOut
    )
}

/// Reads `count` records of one partition from its start.
pub fn read(bootstrap: &str, topic: &str, partition: i32, count: usize) -> Vec<Got> {
    poll(&assigned(bootstrap, topic, partition, Offset::Beginning), count)
}

/// Low and high watermark. Waits for a partition that the broker does not know yet: Kafka answers
/// CreateTopics before its broker has the topic.
pub fn watermarks(bootstrap: &str, topic: &str, partition: i32) -> (i64, i64) {
    let probe: BaseConsumer = base(bootstrap).create().expect("no client");
    let deadline = Instant::now() + PATIENCE;
    loop {
        match probe.fetch_watermarks(topic, partition, PATIENCE) {
            Ok(marks) => return marks,
            Err(error) if Instant::now() > deadline => panic!("no watermarks: {error}"),
            Err(error) => assert!(is_unknown(&error), "no watermarks: {error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn is_unknown(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(code(error), Code::UnknownPartition | Code::UnknownTopic)
        || matches!(code(error), Code::UnknownTopicOrPartition)
}

/// An admin client whose calls wait.
pub struct Admin {
    client: AdminClient<DefaultClientContext>,
    runtime: tokio::runtime::Runtime,
    options: AdminOptions,
}

/// How an admin call ended.
pub type Answer<T> = Result<T, RDKafkaErrorCode>;

impl Admin {
    pub fn new(bootstrap: &str) -> Admin {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Admin {
            client: base(bootstrap).create().expect("no admin client"),
            runtime: runtime.expect("no runtime"),
            options: AdminOptions::new().operation_timeout(Some(PATIENCE)),
        }
    }

    pub fn client(&self) -> &AdminClient<DefaultClientContext> {
        &self.client
    }

    /// The same client, but nothing it asks for is done.
    pub fn validating(mut self) -> Admin {
        self.options = self.options.validate_only(true);
        self
    }

    /// Creates a topic, RF 1, with settings.
    pub fn create(&self, topic: &str, partitions: i32, set: &[(&str, &str)]) -> Answer<()> {
        let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
        for (key, value) in set {
            new = new.set(key, value);
        }
        self.create_new(&new)
    }

    pub fn create_new(&self, new: &NewTopic<'_>) -> Answer<()> {
        let done = self.runtime.block_on(self.client.create_topics([new], &self.options));
        only(done.map_err(|error| code(&error))?).map(|_| ()).map_err(|(_, code)| code)
    }

    /// Creates a topic with a random name, and gives the name.
    pub fn topic(&self, partitions: i32, set: &[(&str, &str)]) -> String {
        let topic = crate::settings::unique("t");
        self.create(&topic, partitions, set).expect("cannot create a topic");
        topic
    }

    pub fn delete(&self, topic: &str) -> Answer<()> {
        let done = self.runtime.block_on(self.client.delete_topics(&[topic], &self.options));
        only(done.map_err(|error| code(&error))?).map(|_| ()).map_err(|(_, code)| code)
    }

    pub fn add_partitions(&self, topic: &str, total: usize) -> Answer<()> {
        let new = NewPartitions::new(topic, total);
        let done = self.runtime.block_on(self.client.create_partitions([&new], &self.options));
        only(done.map_err(|error| code(&error))?).map(|_| ()).map_err(|(_, code)| code)
    }

    pub fn delete_group(&self, group: &str) -> Answer<()> {
        let done = self.runtime.block_on(self.client.delete_groups(&[group], &self.options));
        only(done.map_err(|error| code(&error))?).map(|_| ()).map_err(|(_, code)| code)
    }

    /// Deletes records before `offset`; the new start of the log.
    pub fn delete_records(&self, topic: &str, partition: i32, offset: Offset) -> Answer<i64> {
        let before = list(&[(topic, partition, offset)]);
        let done = self.runtime.block_on(self.client.delete_records(&before, &self.options));
        let done = done.map_err(|error| code(&error))?;
        let place = done.find_partition(topic, partition).expect("an answer for the partition");
        place.error().map_err(|error| code(&error))?;
        Ok(place.offset().to_raw().expect("a deletion answers with an offset"))
    }

    pub fn describe(&self, what: &ResourceSpecifier<'_>) -> Answer<ConfigResource> {
        let done = self.runtime.block_on(self.client.describe_configs([what], &self.options));
        only(done.map_err(|error| code(&error))?)
    }

    /// A topic's settings. The client gives no entries where the broker gave an error, as Kafka
    /// does for a moment after CreateTopics: then it asks again.
    pub fn settings(&self, topic: &str) -> ConfigResource {
        let mut all = None;
        until("the topic is described", || {
            let answer = self.describe(&ResourceSpecifier::Topic(topic)).expect("cannot describe");
            let known = !answer.entries.is_empty();
            all = Some(answer);
            known
        });
        all.expect("asked at least once")
    }

    /// A topic's setting as DescribeConfigs shows it.
    pub fn setting(&self, topic: &str, name: &str) -> Option<String> {
        self.settings(topic).get(name).and_then(|entry| entry.value.clone())
    }

    /// AlterConfigs: the settings not named go back to their defaults.
    pub fn alter(&self, what: ResourceSpecifier<'_>, set: &[(&str, &str)]) -> Answer<()> {
        let mut change = AlterConfig::new(what);
        for (key, value) in set {
            change = change.set(key, value);
        }
        let done = self.runtime.block_on(self.client.alter_configs([&change], &self.options));
        only(done.map_err(|error| code(&error))?).map(|_| ()).map_err(|(_, code)| code)
    }
}

fn only<T>(mut all: Vec<T>) -> T {
    assert_eq!(all.len(), 1, "one answer for one question");
    all.remove(0)
}

/// Waits until `done` says so; panics with `what` when it does not.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
