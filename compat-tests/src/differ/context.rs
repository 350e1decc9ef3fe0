//! What a case works with: one broker, names of its own, and the steps that most cases take.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::batch::Batch;
use super::codec::{self, UNKNOWN_ID, ZERO_ID};
use super::conn::Conn;
use super::rules::Rules;

/// A step that later ones need failed; the case ends there, and that is an observation.
#[derive(Debug)]
pub struct Stop(pub String);

pub type Step<T = ()> = Result<T, Stop>;

/// The context of one run of one case.
pub struct T {
    address: String,
    /// What all names of this run begin with.
    prefix: String,
    main: Conn,
    rules: Rules,
    ids: BTreeMap<String, String>,
    seen: Map<String, Value>,
}

/// The value at a JSON pointer; the whole if it has none there, so that an observation stays one.
pub fn dig(value: &Value, pointer: &str) -> Value {
    value.pointer(pointer).unwrap_or(value).clone()
}

/// The fields of one struct, and those of another over them.
pub fn with(mut fields: Value, more: Value) -> Value {
    for (name, value) in more.as_object().expect("a struct") {
        fields[name] = value.clone();
    }
    fields
}

fn code(value: &Value) -> Option<i64> {
    value["ErrorCode"].as_i64()
}

impl T {
    /// `attempt` is 0 in the first run of the case against this broker.
    pub fn new(address: &str, case: &str, attempt: u8) -> T {
        let slug: String =
            case.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let prefix = |attempt| format!("{}-{slug}-", (b'a' + attempt) as char);
        T {
            address: address.to_owned(),
            prefix: prefix(attempt),
            main: Conn::new(address, Some("differ")),
            rules: Rules::new(&prefix(attempt), &prefix(0)),
            ids: BTreeMap::new(),
            seen: Map::new(),
        }
    }

    /// What was seen; ends the case.
    pub fn finish(mut self, step: Step) -> Map<String, Value> {
        if let Err(Stop(why)) = step {
            self.see("STOPPED", json!(why));
        }
        self.seen
    }

    /// An observation.
    pub fn see(&mut self, label: impl AsRef<str>, value: impl Into<Value>) {
        let value = self.rules.apply("", &value.into());
        let label = self.rules.text(label.as_ref());
        let mut name = label.clone();
        let mut number = 2;
        while self.seen.contains_key(&name) {
            name = format!("{label} #{number}");
            number += 1;
        }
        self.seen.insert(name, value);
    }

    /// A name that only this case uses.
    pub fn name(&self, part: &str) -> String {
        format!("{}{part}", self.prefix)
    }

    /// Whether the name is one of this case's.
    pub fn is_mine(&self, name: &Value) -> bool {
        name.as_str().is_some_and(|name| name.starts_with(&self.prefix))
    }

    /// Leaves only this case's items in a list of an answer.
    pub fn only_mine(&self, mut answer: Value, list: &str, field: &str) -> Value {
        if let Some(items) = answer.pointer_mut(list).and_then(Value::as_array_mut) {
            items.retain(|item| self.is_mine(&item[field]));
        }
        answer
    }

    // Asking.

    /// Another connection.
    pub fn conn(&self) -> Conn {
        self.conn_as(Some("differ"))
    }

    pub fn conn_as(&self, client_id: Option<&str>) -> Conn {
        Conn::new(&self.address, client_id)
    }

    /// The connection that `ask` uses.
    pub fn main(&mut self) -> &mut Conn {
        &mut self.main
    }

    /// A request and its answer, or what happened instead.
    pub fn ask(&mut self, api: &str, version: i16, body: Value) -> Value {
        self.main.ask(api, version, &body)
    }

    /// Asks and observes.
    pub fn look(&mut self, label: impl AsRef<str>, api: &str, version: i16, body: Value) {
        let answer = self.ask(api, version, body);
        self.see(label, answer);
    }

    /// A request without whose success the rest makes no sense.
    pub fn need(&mut self, api: &str, version: i16, body: Value) -> Step<Value> {
        let answer = self.ask(api, version, body);
        match answer.is_object() && code(&answer).unwrap_or(0) == 0 {
            true => Ok(answer),
            false => Err(Stop(format!("{api} v{version}: {answer}"))),
        }
    }

    /// Asks again and again until the answer is good, at most for some seconds; the last answer.
    pub fn poll(
        &mut self,
        mut ask: impl FnMut(&mut T) -> Value,
        good: impl Fn(&Value) -> bool,
    ) -> Value {
        let until = Instant::now() + Duration::from_secs(15);
        loop {
            let answer = ask(self);
            if good(&answer) || Instant::now() > until {
                return answer;
            }
            self.pause(25);
        }
    }

    pub fn pause(&self, ms: u64) {
        std::thread::sleep(Duration::from_millis(ms));
    }

    // Topics.

    /// A topic of this case that serves; records in it do not expire unless a setting says so.
    pub fn topic(&mut self, part: &str, partitions: i32, configs: &[(&str, &str)]) -> Step<String> {
        let name = self.name(part);
        let mut settings: BTreeMap<&str, &str> = BTreeMap::from([("retention.ms", "-1")]);
        settings.extend(configs.iter().copied());
        let settings = settings.iter().map(|(name, value)| json!({"Name": name, "Value": value}));
        let topic = json!({
            "Name": name, "NumPartitions": partitions, "ReplicationFactor": 1,
            "Configs": settings.collect::<Vec<_>>(),
        });
        let made = self.ask("CreateTopics", 7, json!({"Topics": [topic], "timeoutMs": 15000}));
        if code(&dig(&made, "/Topics/0")) != Some(0) {
            return Err(Stop(format!("CreateTopics: {made}")));
        }
        self.await_topic(&name, partitions)?;
        Ok(name)
    }

    /// Waits until each partition has a leader that serves, and learns the topic's id.
    pub fn await_topic(&mut self, name: &str, partitions: i32) -> Step {
        let indexes = 0..partitions;
        let wanted = indexes.map(|index| json!({"PartitionIndex": index, "Timestamp": -1}));
        let topic = json!({"Name": name, "Partitions": wanted.collect::<Vec<_>>()});
        let body = json!({"ReplicaId": -1, "Topics": [topic]});
        let serves = |answer: &Value| {
            let partitions = answer.pointer("/Topics/0/Partitions").and_then(Value::as_array);
            partitions.is_some_and(|all| all.iter().all(|each| code(each) == Some(0)))
        };
        let answer = self.poll(|t| t.ask("ListOffsets", 7, body.clone()), serves);
        if !serves(&answer) {
            return Err(Stop(format!("the topic does not serve: {answer}")));
        }
        let known = self.poll(
            |t| {
                t.ask(
                    "Metadata",
                    12,
                    json!({"Topics": [{"Name": name}], "AllowAutoTopicCreation": false}),
                )
            },
            |answer| code(&dig(answer, "/Topics/0")) == Some(0),
        );
        let id = dig(&known, "/Topics/0/TopicId");
        let id = id.as_str().unwrap_or(ZERO_ID);
        self.rules.name_id(id, name);
        self.ids.insert(name.to_owned(), id.to_owned());
        Ok(())
    }

    /// Waits until what was changed before is seen everywhere. Changes are published in order, and
    /// Kafka answers before it publishes: a topic made now serves after all of them.
    pub fn settle(&mut self) -> Step {
        let number = self.ids.len();
        self.topic(&format!("settled-{number}"), 1, &[]).map(drop)
    }

    /// The id of a topic that this case made; of others, one that no topic has.
    pub fn id(&self, topic: &str) -> String {
        self.ids.get(topic).cloned().unwrap_or_else(|| UNKNOWN_ID.to_owned())
    }

    /// Deletes a topic and waits until it is unknown.
    pub fn delete_topic(&mut self, topic: &str) -> Step {
        let body = json!({"TopicNames": [topic], "TimeoutMs": 10000});
        let answer = self.need("DeleteTopics", 5, body)?;
        let known = json!({"Topics": [{"Name": topic}], "AllowAutoTopicCreation": false});
        self.poll(
            |t| t.ask("Metadata", 12, known.clone()),
            |answer| code(&dig(answer, "/Topics/0")) == Some(3),
        );
        match code(&dig(&answer, "/Responses/0")) {
            Some(0) => Ok(()),
            _ => Err(Stop(format!("DeleteTopics: {answer}"))),
        }
    }

    pub fn set_config(&mut self, topic: &str, name: &str, value: &str) -> Step {
        let config = json!({"Name": name, "ConfigOperation": 0, "Value": value});
        let resource = json!({"ResourceType": 2, "ResourceName": topic, "Configs": [config]});
        let answer = self.need("IncrementalAlterConfigs", 1, json!({"Resources": [resource]}))?;
        match code(&dig(&answer, "/Responses/0")) {
            Some(0) => Ok(()),
            _ => Err(Stop(format!("IncrementalAlterConfigs: {answer}"))),
        }
    }

    // Records.

    /// A Produce of one batch to partition 0, by name or id as the version has it.
    pub fn produce_body(&self, topic: &str, acks: i16, records: &[u8]) -> Value {
        let partition = json!({"Index": 0, "Records": codec::hex(records)});
        let topic = json!({"Name": topic, "TopicId": self.id(topic), "PartitionData": [partition]});
        json!({"Acks": acks, "TimeoutMs": 5000, "TopicData": [topic]})
    }

    /// Produces to partition 0; the partition's answer.
    pub fn produce(&mut self, topic: &str, version: i16, batch: &Batch) -> Value {
        self.produce_bytes(topic, version, &batch.bytes())
    }

    pub fn produce_bytes(&mut self, topic: &str, version: i16, records: &[u8]) -> Value {
        let body = self.produce_body(topic, -1, records);
        dig(&self.ask("Produce", version, body), "/Responses/0/PartitionResponses/0")
    }

    /// Produces and insists on it; the base offset.
    pub fn put(&mut self, topic: &str, batch: &Batch) -> Step<i64> {
        let answer = self.produce(topic, 9, batch);
        match (code(&answer), answer["BaseOffset"].as_i64()) {
            (Some(0), Some(offset)) => Ok(offset),
            _ => Err(Stop(format!("Produce: {answer}"))),
        }
    }

    /// A Fetch of partition 0 that does not wait.
    pub fn fetch_body(&self, topic: &str, offset: i64) -> Value {
        let partition =
            json!({"Partition": 0, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20});
        let topic = json!({"Topic": topic, "TopicId": self.id(topic), "Partitions": [partition]});
        let limits = json!({"MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1 << 20, "ReplicaId": -1});
        with(limits, json!({ "Topics": [topic] }))
    }

    /// Fetches partition 0; the partition's answer.
    pub fn fetch(&mut self, topic: &str, version: i16, offset: i64) -> Value {
        let body = self.fetch_body(topic, offset);
        dig(&self.ask("Fetch", version, body), "/Responses/0/Partitions/0")
    }

    /// Observes the first megabyte of partition 0.
    pub fn see_log(&mut self, label: impl AsRef<str>, topic: &str) {
        let answer = self.fetch(topic, 11, 0);
        let records = answer.get("Records").filter(|_| code(&answer) == Some(0));
        let seen = match records {
            Some(records) => json!({ "Records": records }),
            None => answer,
        };
        self.see(label, seen);
    }

    /// ListOffsets of partition 0.
    pub fn offset_at(&mut self, topic: &str, version: i16, time: i64) -> Value {
        let partition = json!({"PartitionIndex": 0, "Timestamp": time});
        let topic = json!({"Name": topic, "Partitions": [partition]});
        let answer = self.ask("ListOffsets", version, json!({"ReplicaId": -1, "Topics": [topic]}));
        dig(&answer, "/Topics/0/Partitions/0")
    }

    // Coordinators.

    /// Waits until groups are served; the name of one of this case.
    pub fn group(&mut self, part: &str) -> Step<String> {
        let name = self.name(part);
        let body = json!({"Key": name, "KeyType": 0});
        let found = self
            .poll(|t| t.ask("FindCoordinator", 3, body.clone()), |found| code(found) == Some(0));
        let loaded = self.poll(
            |t| t.ask("OffsetFetch", 5, json!({"GroupId": name, "Topics": []})),
            |answer| code(answer) == Some(0),
        );
        match (code(&found), code(&loaded)) {
            (Some(0), Some(0)) => Ok(name),
            _ => Err(Stop(format!("no coordinator: {found} {loaded}"))),
        }
    }

    /// A new producer id.
    pub fn producer_id(&mut self) -> Step<i64> {
        let body = json!({"TransactionalId": null, "TransactionTimeoutMs": 60000});
        let answer = self
            .poll(|t| t.ask("InitProducerId", 4, body.clone()), |answer| code(answer) == Some(0));
        answer["ProducerId"].as_i64().ok_or_else(|| Stop(format!("InitProducerId: {answer}")))
    }
}
