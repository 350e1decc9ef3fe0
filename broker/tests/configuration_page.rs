//! `docs/configuration.md` is what the table says, and the table is what the program does.
//! With UPDATE_DOCS=1 the page is written anew.

use std::fs;
use std::path::Path;

use broker::config::{Meaning, keys};

/// Settings that `config` itself turns into listeners, directories and other structs.
const TURNED_INTO_STRUCTS: [&str; 11] = [
    "advertised.listeners",
    "controller.listener.names",
    "http.listen",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
    "producer.id.expiration.ms",
    "security.inter.broker.protocol",
];

/// A broker setting may only claim to act if something outside `config` reads it, by its key or
/// as the default of a topic setting.
#[test]
fn what_acts_is_read() {
    let sources = sources_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let behind: Vec<&str> = keys::topic::ROWS.iter().flat_map(|row| row.broker).copied().collect();
    let idle: Vec<&str> = keys::broker_rows()
        .filter(|row| row.meaning == Meaning::Acts)
        .filter(|row| !behind.contains(&row.name) && !TURNED_INTO_STRUCTS.contains(&row.name))
        .filter(|row| !reads(&sources, &row.name.replace('.', "_").to_uppercase()))
        .map(|row| row.name)
        .collect();
    assert!(idle.is_empty(), "marked as Acts, but read nowhere: {idle:?}");
}

fn reads(sources: &str, constant: &str) -> bool {
    let call = format!("keys::{constant}");
    let more = |rest: &str| rest.starts_with(|c: char| c == '_' || c.is_ascii_alphanumeric());
    sources.match_indices(&call).any(|(at, _)| !more(&sources[at + call.len()..]))
}

/// All Rust text below a directory, but for that of `config`.
fn sources_in(dir: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "config") {
            all.push_str(&sources_in(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push_str(&fs::read_to_string(&path).expect("a file"));
        }
    }
    all
}

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let wanted = broker::config::page();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        fs::write(&path, &wanted).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let help = "run UPDATE_DOCS=1 cargo test -p broker --test configuration_page";
    assert!(found == wanted, "docs/configuration.md is stale: {help}");
}
