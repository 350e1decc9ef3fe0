//! The field table of Apache Kafka 4.4, read as text: what every message has in every version.
//!
//! A reader of its own, so that a mistake in the broker's reading of the same file shows.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

const TEXT: &str = include_str!("../../../protocol-compat/schema/kafka-4.4.txt");

/// Versions from the first to the last, both included; none if the first is above the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions(pub i16, pub i16);

const NONE: Versions = Versions(0, -1);

impl Versions {
    pub fn holds(self, version: i16) -> bool {
        self.0 <= version && version <= self.1
    }

    fn parse(text: &str) -> Versions {
        let number = |text: &str| text.parse::<i16>().unwrap_or_else(|_| panic!("version {text}"));
        if text == "none" {
            NONE
        } else if let Some(from) = text.strip_suffix('+') {
            Versions(number(from), i16::MAX)
        } else if let Some((from, to)) = text.split_once('-') {
            Versions(number(from), number(to))
        } else {
            Versions(number(text), number(text))
        }
    }
}

#[derive(Clone, Debug)]
pub enum Type {
    Bool,
    /// A number of that many bytes, and whether it has a sign.
    Int(usize, bool),
    Float,
    Uuid,
    String,
    /// `bytes` and `records`.
    Bytes,
    Struct(Arc<Vec<Field>>),
    Array(Box<Type>),
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    pub kind: Type,
    pub versions: Versions,
    pub nullable: Versions,
    /// The tag, and the versions in which the field is one.
    pub tag: Option<(u32, Versions)>,
    pub default: Option<String>,
}

impl Field {
    /// Its tag in this version; none if it stands in line.
    pub fn tag_in(&self, version: i16) -> Option<u32> {
        self.tag.filter(|(_, versions)| versions.holds(version)).map(|(tag, _)| tag)
    }
}

#[derive(Debug)]
pub struct Message {
    pub key: i16,
    pub versions: Versions,
    pub flexible: Versions,
    pub fields: Arc<Vec<Field>>,
}

/// One API as a broker's listener has it.
#[derive(Debug)]
pub struct Api {
    pub key: i16,
    pub name: String,
    pub on_broker: bool,
    latest_unstable: bool,
    pub request: Message,
    pub response: Message,
}

impl Api {
    /// The versions that a broker serves, lowest first.
    pub fn stable(&self) -> std::ops::RangeInclusive<i16> {
        let Versions(low, high) = self.request.versions;
        low..=high - i16::from(self.latest_unstable)
    }
}

static APIS: LazyLock<BTreeMap<i16, Api>> = LazyLock::new(|| parse(TEXT));

/// Every API, by key.
pub fn apis() -> &'static BTreeMap<i16, Api> {
    &APIS
}

/// The API of that name; a misspelt one is a mistake of the case.
pub fn api(name: &str) -> &'static Api {
    let found = APIS.values().find(|api| api.name == name);
    found.unwrap_or_else(|| panic!("no API is named {name}"))
}

/// A line with its depth below the message's heading.
struct Line<'a> {
    depth: usize,
    words: Vec<&'a str>,
}

fn parse(text: &str) -> BTreeMap<i16, Api> {
    let mut requests = BTreeMap::new();
    let mut responses = BTreeMap::new();
    for block in text.split("\n\n") {
        let lines = block.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let lines: Vec<Line> = lines.map(line).collect();
        let Some(heading) = lines.first() else { continue };
        match heading.words[0] {
            "request" => {
                let message = message(&lines);
                requests.insert(message.key, (flag_set(heading), message));
            }
            "response" => {
                let message = message(&lines);
                responses.insert(message.key, message);
            }
            _ => {}
        }
    }
    let joined =
        requests.into_iter().map(|(key, ((name, on_broker, latest_unstable), request))| {
            let response = responses.remove(&key).expect("every request has a response");
            (key, Api { key, name, on_broker, latest_unstable, request, response })
        });
    joined.collect()
}

/// Name, whether a broker's listener serves it, whether its last version is unstable.
fn flag_set(heading: &Line) -> (String, bool, bool) {
    let name = heading.words[2].trim_end_matches("Request").to_owned();
    let listeners = attribute(&heading.words, "listeners").unwrap_or_default();
    let on_broker = listeners.split(',').any(|listener| listener == "broker");
    (name, on_broker, heading.words.contains(&"latest-unstable"))
}

fn line(text: &str) -> Line<'_> {
    let depth = text.len() - text.trim_start().len();
    Line { depth: depth / 2, words: text.split_whitespace().collect() }
}

fn attribute<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    let value = words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    Some(value.trim_matches('"'))
}

fn message(lines: &[Line]) -> Message {
    let heading = &lines[0].words;
    let versions = |name| Versions::parse(attribute(heading, name).expect("in every heading"));
    let body = &lines[1..];
    let mut named = BTreeMap::new();
    // Named structs use only structs defined before or after them without a circle.
    for _ in 0..3 {
        for (at, line) in body.iter().enumerate().filter(|(_, line)| line.words[0] == "struct") {
            let fields = fields(children(body, at), line.depth + 1, &named);
            named.insert(line.words[1].to_owned(), Arc::new(fields));
        }
    }
    Message {
        key: heading[1].parse().expect("a key is a number"),
        versions: versions("versions"),
        flexible: versions("flexible"),
        fields: Arc::new(fields(body, 1, &named)),
    }
}

/// The lines below the one at `at`.
fn children<'l, 'a>(lines: &'l [Line<'a>], at: usize) -> &'l [Line<'a>] {
    let rest = &lines[at + 1..];
    let end = rest.iter().position(|line| line.depth <= lines[at].depth).unwrap_or(rest.len());
    &rest[..end]
}

type Named = BTreeMap<String, Arc<Vec<Field>>>;

fn fields(lines: &[Line], depth: usize, named: &Named) -> Vec<Field> {
    let own = lines.iter().enumerate().filter(|(_, line)| line.depth == depth);
    let own = own.filter(|(_, line)| line.words[0] != "struct");
    own.map(|(at, line)| field(&line.words, children(lines, at), depth, named)).collect()
}

fn field(words: &[&str], below: &[Line], depth: usize, named: &Named) -> Field {
    let (element, is_array) = match words[1].strip_prefix("[]") {
        Some(element) => (element, true),
        None => (words[1], false),
    };
    let kind = match element {
        "bool" => Type::Bool,
        "int8" => Type::Int(1, true),
        "int16" => Type::Int(2, true),
        "uint16" => Type::Int(2, false),
        "int32" => Type::Int(4, true),
        "uint32" => Type::Int(4, false),
        "int64" => Type::Int(8, true),
        "float64" => Type::Float,
        "uuid" => Type::Uuid,
        "string" => Type::String,
        "bytes" | "records" => Type::Bytes,
        name if below.is_empty() => Type::Struct(named.get(name).cloned().unwrap_or_default()),
        _ => Type::Struct(Arc::new(fields(below, depth + 1, named))),
    };
    let tag = attribute(words, "tag").map(|text| {
        let (tag, versions) = text.split_once('@').expect("tag=N@VERSIONS");
        (tag.parse().expect("a tag is a number"), Versions::parse(versions))
    });
    Field {
        name: words[0].to_owned(),
        kind: if is_array { Type::Array(Box::new(kind)) } else { kind },
        versions: Versions::parse(words[2]),
        nullable: attribute(words, "null").map_or(NONE, Versions::parse),
        tag,
        default: attribute(words, "default").map(str::to_owned),
    }
}

#[cfg(test)]
mod tests;
