//! What may differ between two brokers, as named rules; everything else is compared as it is.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::batch;
use super::codec::{ZERO_ID, bytes_of};

/// The rules, and what each does. `README.md` beside the recordings is checked against this.
pub const RULES: [(&str, &str); 14] = [
    ("cluster", "`ClusterId` that is set: `<cluster>`"),
    ("host", "`Host` that is set: `<host>`"),
    ("port", "`Port` above 0: `<port>`"),
    ("directory", "`LogDir` that is set: `<dir>`"),
    ("disk", "`TotalBytes` and `UsableBytes` above 0: `<bytes>`"),
    ("id", "topic ids by the name of the topic, others by first appearance; zero stays"),
    ("member", "uuids in texts, as member ids have them: by first appearance"),
    ("producer", "`ProducerId` from 0 on: by first appearance"),
    ("session", "`SessionId` that is not 0: `<session>`"),
    ("throttle", "`ThrottleTimeMs`: left out"),
    ("features", "`FinalizedFeaturesEpoch` from 0 on: `<epoch>`"),
    ("clock", "times within an hour of now: `<now>`; others are set by the cases and stay"),
    ("text", "error texts and documentation: empty, null or `<text>`"),
    ("order", "lists of structs without order, but for records, synonyms and record errors"),
];

const TEXTS: [&str; 4] =
    ["ErrorMessage", "BatchIndexErrorMessage", "Documentation", "ConfigDocumentation"];
const IN_ORDER: [&str; 6] =
    ["Records", "records", "Synonyms", "RecordErrors", "AbortedTransactions", "InOrder"];
const HOUR_MS: i64 = 3_600_000;

/// Rewrites what one case saw. Numbers things by first appearance, so it lives as long as the case.
pub struct Rules {
    ids: BTreeMap<String, String>,
    members: BTreeMap<String, String>,
    producers: BTreeMap<i64, String>,
    /// What the names of this run begin with, and what they would in a first run.
    prefix: (String, String),
}

impl Rules {
    pub fn new(prefix: &str, usual_prefix: &str) -> Rules {
        Rules {
            ids: BTreeMap::new(),
            members: BTreeMap::new(),
            producers: BTreeMap::new(),
            prefix: (prefix.to_owned(), usual_prefix.to_owned()),
        }
    }

    /// From now on the id of that topic is called by the topic's name.
    pub fn name_id(&mut self, id: &str, topic: &str) {
        if id != ZERO_ID {
            let name = format!("<id {}>", self.text(topic));
            self.ids.insert(id.to_owned(), name);
        }
    }

    /// What the case saw, as it is recorded and compared. `field` is the name it stands under.
    pub fn apply(&mut self, field: &str, value: &Value) -> Value {
        match value {
            Value::Object(fields) if field == "Records" && fields.contains_key("hex") => {
                let bytes = bytes_of(value).unwrap_or_default();
                self.apply("records", &batch::parse(&bytes))
            }
            Value::Object(fields) => {
                let kept = fields.iter().filter(|(name, _)| *name != "ThrottleTimeMs");
                let done = kept.map(|(name, value)| (self.text(name), self.apply(name, value)));
                Value::Object(done.collect::<Vec<_>>().into_iter().collect::<Map<_, _>>())
            }
            Value::Array(items) => {
                let mut done: Vec<Value> =
                    items.iter().map(|item| self.apply(field, item)).collect();
                if !IN_ORDER.contains(&field) && done.iter().all(Value::is_object) {
                    done.sort_by_cached_key(sort_key);
                }
                Value::Array(done)
            }
            Value::Number(number) => match number.as_i64() {
                Some(number) => self.number(field, number),
                None => value.clone(),
            },
            Value::String(text) => self.string(field, text),
            Value::Bool(_) | Value::Null => value.clone(),
        }
    }

    fn number(&mut self, field: &str, number: i64) -> Value {
        match field {
            "Port" if number > 0 => json!("<port>"),
            "TotalBytes" | "UsableBytes" if number > 0 => json!("<bytes>"),
            "SessionId" if number != 0 => json!("<session>"),
            "FinalizedFeaturesEpoch" if number >= 0 => json!("<epoch>"),
            "ProducerId" if number >= 0 => {
                let next = self.producers.len() + 1;
                let name = self.producers.entry(number).or_insert(format!("<producer {next}>"));
                json!(name)
            }
            _ if is_clock(field) && (number - now_ms()).abs() < HOUR_MS => json!("<now>"),
            _ => json!(number),
        }
    }

    fn string(&mut self, field: &str, text: &str) -> Value {
        match field {
            _ if text.is_empty() => json!(""),
            "ClusterId" => json!("<cluster>"),
            "Host" => json!("<host>"),
            "LogDir" => json!("<dir>"),
            _ if TEXTS.contains(&field) => json!("<text>"),
            _ if text == ZERO_ID => json!("<no id>"),
            _ if text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                let next = self.ids.len() + 1;
                json!(self.ids.entry(text.to_owned()).or_insert(format!("<id {next}>")))
            }
            _ => json!(self.text(text)),
        }
    }

    /// A text with its uuids and the beginning of names made usual.
    pub fn text(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = (0..rest.len()).find(|at| is_uuid(rest.as_bytes(), *at)) {
            let next = self.members.len() + 1;
            let name = self.members.entry(rest[at..at + 36].to_owned());
            out.push_str(&rest[..at]);
            out.push_str(name.or_insert(format!("<uuid {next}>")));
            rest = &rest[at + 36..];
        }
        out.push_str(rest);
        out.replace(&self.prefix.0, &self.prefix.1)
    }
}

fn is_clock(field: &str) -> bool {
    field.contains("Time") || field.starts_with("LastFetch")
}

fn is_uuid(bytes: &[u8], at: usize) -> bool {
    let Some(bytes) = bytes.get(at..at + 36) else { return false };
    bytes.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

pub fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970");
    now.as_millis() as i64
}

/// Fields that say which struct of a list is which, in the order in which they count.
pub const IDENTITIES: [&str; 16] = [
    "ApiKey",
    "Name",
    "Topic",
    "TopicName",
    "TopicId",
    "GroupId",
    "Key",
    "ResourceName",
    "PartitionIndex",
    "Partition",
    "Index",
    "PartitionId",
    "NodeId",
    "BrokerId",
    "MemberId",
    "Feature",
];

fn sort_key(item: &Value) -> String {
    let mut key = String::new();
    for name in IDENTITIES {
        match &item[name] {
            Value::Number(number) => {
                key.push_str(&format!("{:020} ", number.as_i64().unwrap_or(0)))
            }
            Value::String(text) => key.push_str(&format!("{text} ")),
            _ => {}
        }
    }
    key + &item.to_string()
}

#[cfg(test)]
mod tests;
