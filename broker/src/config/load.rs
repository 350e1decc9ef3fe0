//! From texts to a `Config`: the file, the overrides, unknown keys and settings without effect.
//! Whether the settings agree with each other is `check.rs`.

use std::collections::BTreeMap;

use super::notice::{ConfigError, Notice, Place, Problem};
use super::row::{Kind, Meaning, Row, Scope};
use super::{Config, Setting, Value, check, keys, properties};

/// A good configuration, and what should be said about it at start.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    pub notices: Vec<Notice>,
}

/// What was given for one key.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub place: Place,
    pub text: String,
}

/// What is found while loading.
#[derive(Default)]
pub(super) struct Findings {
    pub problems: Vec<Problem>,
    pub notices: Vec<Notice>,
}

pub(super) fn load(
    file: Option<(&str, &str)>,
    overrides: &[(String, String)],
) -> Result<Loaded, ConfigError> {
    let mut findings = Findings::default();
    let given = gather(file, overrides, &mut findings);
    let mut set = BTreeMap::new();
    let mut custom = BTreeMap::new();
    for (key, Given { place, text }) in &given {
        let Some(row) = static_row(key) else {
            findings.notices.extend(unknown_key(key, place));
            custom.insert(key.clone(), text.clone());
            continue;
        };
        match row.parse(text) {
            Ok(value) => {
                findings.notices.extend(effect(row, &value, place));
                set.insert(row.name, Setting { raw: text.clone(), value });
            }
            Err(bad) => findings.problems.push(Problem {
                place: place.clone(),
                key: key.clone(),
                value: (row.kind != Kind::Password).then(|| text.clone()),
                text: bad.to_string(),
            }),
        }
    }
    let config = check::complete(set, custom, &given, &mut findings);
    if findings.problems.is_empty() {
        return Ok(Loaded { config, notices: findings.notices });
    }
    Err(ConfigError { problems: findings.problems })
}

/// The last text for each key, the overrides after the file.
fn gather(
    file: Option<(&str, &str)>,
    overrides: &[(String, String)],
    findings: &mut Findings,
) -> BTreeMap<String, Given> {
    let mut given: BTreeMap<String, Given> = BTreeMap::new();
    if let Some((name, text)) = file {
        let properties = properties::parse(text).unwrap_or_else(|bad| {
            findings.problems.push(Problem {
                place: Place::Line { file: name.to_owned(), line: bad.line },
                key: "\\u".to_owned(),
                value: None,
                text: "must be followed by four hexadecimal digits".to_owned(),
            });
            Vec::new()
        });
        for property in properties {
            let place = Place::Line { file: name.to_owned(), line: property.line };
            let now = Given { place: place.clone(), text: property.value };
            if given.insert(property.key.clone(), now).is_some() {
                let text = "is given more than once; the last one holds".to_owned();
                findings.notices.push(Notice { place, key: property.key, text });
            }
        }
    }
    for (key, text) in overrides {
        given.insert(key.clone(), Given { place: Place::Override, text: text.clone() });
    }
    given
}

/// The row of a key that may stand in the file.
fn static_row(key: &str) -> Option<&'static Row> {
    keys::broker(key).filter(|row| row.scope != Scope::DynamicOnly)
}

/// The remark about a setting that does nothing (yet); none is needed where it says the default.
fn effect(row: &Row, value: &Value, place: &Place) -> Option<Notice> {
    if row.default.as_ref() == Some(value) {
        return None;
    }
    let text = match row.meaning {
        Meaning::Acts => return None,
        Meaning::Later => "is accepted but has no effect yet",
        Meaning::Never => "is accepted but has no effect in Gracchus",
    };
    Some(Notice { place: place.clone(), key: row.name.to_owned(), text: text.to_owned() })
}

/// Keys of plug-ins, of the authorizer and of single listeners: not in the table, yet known.
const KNOWN_PREFIXES: [&str; 4] =
    ["listener.name.", "rsm.config.", "rlmm.config.", "config.providers."];
const KNOWN_CUSTOM: [&str; 2] = ["super.users", "allow.everyone.if.no.acl.found"];

/// Gone since Kafka 4.0; files that are older still name them.
const REMOVED: [&str; 12] = [
    "auto.include.jmx.reporter",
    "broker.id.generation.enable",
    "control.plane.listener.name",
    "delegation.token.master.key",
    "inter.broker.protocol.version",
    "log.message.format.version",
    "log.message.timestamp.difference.max.ms",
    "offsets.commit.required.acks",
    "password.encoder.",
    "reserved.broker.max.id",
    "log.message.downconversion.enable",
    "zookeeper.",
];

fn unknown_key(key: &str, place: &Place) -> Option<Notice> {
    if KNOWN_CUSTOM.contains(&key) || KNOWN_PREFIXES.iter().any(|start| key.starts_with(start)) {
        return None;
    }
    let text = if REMOVED.iter().any(|old| is_or_begins(key, old)) {
        "was removed in Kafka 4.0 and is ignored".to_owned()
    } else if keys::broker(key).is_some() {
        "can only be changed while the broker runs and is ignored here".to_owned()
    } else if let Some(row) = keys::topic_row(key).filter(|row| !row.broker.is_empty()) {
        format!("is a topic setting; for all topics set {}", row.broker.join(" or "))
    } else {
        match nearest(key) {
            Some(name) => format!("is unknown and ignored; did you mean {name}?"),
            None => "is unknown and ignored".to_owned(),
        }
    };
    Some(Notice { place: place.clone(), key: key.to_owned(), text })
}

fn is_or_begins(key: &str, old: &str) -> bool {
    key == old || (old.ends_with('.') && key.starts_with(old))
}

/// The known name that differs least, if it is near enough to be meant.
fn nearest(key: &str) -> Option<&'static str> {
    let limit = 2 + key.len() / 10;
    keys::broker_rows()
        .filter(|row| !row.internal || row.name == keys::HTTP_LISTEN.row.name)
        .filter(|row| row.name.len().abs_diff(key.len()) <= limit)
        .map(|row| (distance(key, row.name), row.name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein's distance in bytes. Keys that are far too long are far from everything.
fn distance(left: &str, right: &str) -> usize {
    const LONGEST: usize = 120;
    if left.len() > LONGEST || right.len() > LONGEST {
        return LONGEST;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, from) in left.bytes().enumerate() {
        let mut diagonal = i;
        let mut before = i + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(right.bytes()) {
            let replaced = diagonal + usize::from(from != to);
            diagonal = *cell;
            before = replaced.min(*cell + 1).min(before + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
