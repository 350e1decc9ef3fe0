//! `meta.properties`: who a log directory belongs to. The text and its rules; no I/O.
//!
//! Source: `MetaProperties` (v0 of ZooKeeper times, v1 of KRaft) and the store format of
//! `java.util.Properties`. One key is ours: the version of what Gracchus keeps in the directory.

use std::collections::BTreeMap;

use protocol_compat::ids::{parse_topic_id, topic_id_text};
use uuid::Uuid;

/// The version of the directory format that this build writes and reads.
pub const FORMAT_VERSION: u32 = 1;

const VERSION: &str = "version";
const CLUSTER_ID: &str = "cluster.id";
const NODE_ID: &str = "node.id";
const BROKER_ID: &str = "broker.id";
const DIRECTORY_ID: &str = "directory.id";
const FORMAT: &str = "gracchus.format.version";

/// Directory ids below this are reserved (KIP-858: 0 MIGRATING, 1 UNASSIGNED, 2 LOST).
const RESERVED_IDS: u128 = 100;

/// The content of `meta.properties`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetaProperties {
    /// `None` before the node joined a cluster.
    pub cluster_id: Option<String>,
    pub node_id: i32,
    /// `None` where an older Kafka wrote the file.
    pub directory_id: Option<Uuid>,
    /// `None` where Gracchus has not used the directory yet.
    pub format_version: Option<u32>,
    /// Keys that we do not know; kept as they are.
    pub others: BTreeMap<String, String>,
}

/// Why a `meta.properties` was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetaProblem {
    Malformed(String),
    /// Written by something newer than this build.
    TooNew {
        key: &'static str,
        found: String,
        known: u32,
    },
}

impl MetaProperties {
    /// The text, in version 1. Kafka reads it and leaves the key that is ours alone.
    pub fn print(&self) -> String {
        let mut all = self.others.clone();
        let mut put = |key: &str, value: String| drop(all.insert(key.to_owned(), value));
        put(VERSION, "1".to_owned());
        put(NODE_ID, self.node_id.to_string());
        if let Some(id) = &self.cluster_id {
            put(CLUSTER_ID, id.clone());
        }
        if let Some(id) = self.directory_id {
            put(DIRECTORY_ID, topic_id_text(id));
        }
        if let Some(version) = self.format_version {
            put(FORMAT, version.to_string());
        }
        let mut text = "#\n# Written by Gracchus\n".to_owned();
        for (key, value) in &all {
            text.push_str(&format!("{}={}\n", escape(key), escape(value)));
        }
        text
    }

    pub fn parse(text: &str) -> Result<MetaProperties, MetaProblem> {
        let mut all = parse_properties(text);
        let version = number(&mut all, VERSION)?.unwrap_or(0);
        let node_key = match version {
            0 => BROKER_ID,
            1 => NODE_ID,
            _ => return Err(too_new(VERSION, version, 1)),
        };
        let node_id = number(&mut all, node_key)?;
        let node_id = node_id.ok_or_else(|| malformed(format!("{node_key} is missing")))?;
        let node_id = i32::try_from(node_id)
            .map_err(|_| malformed(format!("{node_key} is {node_id}, not a node id")))?;
        let format_version = number(&mut all, FORMAT)?;
        if let Some(found) = format_version.filter(|found| *found > FORMAT_VERSION) {
            return Err(too_new(FORMAT, found, FORMAT_VERSION));
        }
        let directory_id = all.remove(DIRECTORY_ID).map(|text| directory_id(&text)).transpose()?;
        let cluster_id = all.remove(CLUSTER_ID).filter(|id| !id.is_empty());
        Ok(MetaProperties { cluster_id, node_id, directory_id, format_version, others: all })
    }
}

/// Whether a directory may have this id.
pub fn usable_directory_id(id: Uuid) -> bool {
    id.as_u128() >= RESERVED_IDS
}

fn directory_id(text: &str) -> Result<Uuid, MetaProblem> {
    match parse_topic_id(text) {
        Some(id) if usable_directory_id(id) => Ok(id),
        Some(_) => Err(malformed(format!("{DIRECTORY_ID} {text} is reserved"))),
        None => Err(malformed(format!("{DIRECTORY_ID} {text:?} is not an id"))),
    }
}

fn malformed(reason: String) -> MetaProblem {
    MetaProblem::Malformed(reason)
}

fn too_new(key: &'static str, found: u32, known: u32) -> MetaProblem {
    MetaProblem::TooNew { key, found: found.to_string(), known }
}

fn number(all: &mut BTreeMap<String, String>, key: &str) -> Result<Option<u32>, MetaProblem> {
    let Some(text) = all.remove(key) else { return Ok(None) };
    let number = text.trim().parse();
    number.map(Some).map_err(|_| malformed(format!("{key} is {text:?}, not a number")))
}

/// Java's properties: comments, `=`, `:` or blanks as separators, escapes. A line that continues
/// another is not written by anyone here and is not supported.
fn parse_properties(text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for line in text.lines().map(str::trim_start) {
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let (key, rest) = line.split_at(key_end(line));
        let rest = rest.trim_start();
        let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start();
        all.insert(unescape(key), unescape(value));
    }
    all
}

/// Where the key ends: at the first separator that no backslash hides.
fn key_end(line: &str) -> usize {
    let mut hidden = false;
    for (at, c) in line.char_indices() {
        match c {
            _ if hidden => hidden = false,
            '\\' => hidden = true,
            '=' | ':' | ' ' | '\t' => return at,
            _ => {}
        }
    }
    line.len()
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                out.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' | '=' | ':' | '#' | '!' | ' ' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}
