//! The page `docs/configuration.md`, made from the table.

use std::fmt::Write as _;

use super::keys;
use super::row::{Kind, Meaning, Row, Scope};

const HEAD: &str = "\
# Configuration

<!-- Generated from broker/src/config/keys; do not edit.
     UPDATE_DOCS=1 cargo test -p broker --test configuration_page -->

Gracchus takes the settings of Apache Kafka 4.4 under their own names, from a file in the format of
`server.properties` and from the command line:

    gracchus --config server.properties --override num.partitions=3

Without either it is one node that listens on 127.0.0.1:9092 and keeps its data in
`./gracchus-data`. An unknown key is a warning at start, with the nearest known name; a value that
cannot be read or is out of bounds stops the start and says what is allowed. Where the defaults
differ from Kafka's, see [differences](differences.md#configuration).

What holds for a broker setting, strongest first: the broker's own dynamic setting, the cluster's
dynamic default, the command line, the file, the default below. A topic or group setting holds
before the broker setting behind it.

*Changes*: `start` is read at start only; `broker` can change while the broker runs, for one broker;
`cluster` for one broker or for all; `run` can only be given while the broker runs.
*Acts*: `yes`; `later` is accepted and does nothing yet; `no` is accepted and will do nothing here.

";

/// The whole page.
pub fn page() -> String {
    let mut out = HEAD.to_owned();
    for (title, rows) in keys::BROKER {
        chapter(&mut out, title, rows, false);
    }
    chapter(&mut out, "Topic settings", &keys::topic::ROWS, true);
    chapter(&mut out, "Group settings", &keys::group::ROWS, true);
    let rows = &keys::client_metrics::ROWS;
    chapter(&mut out, "Client-metrics subscriptions", rows, true);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn chapter(out: &mut String, title: &str, rows: &[Row], resource: bool) {
    let third = if resource { "Broker setting behind it" } else { "Changes" };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "## {title}\n");
    let _ = writeln!(out, "| Setting | Type | Default | Allowed | {third} | Acts | What it does |");
    let _ = writeln!(out, "|---|---|---|---|---|---|---|");
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| row.name);
    for row in rows {
        let third = if resource { behind(row) } else { changes(row.scope).to_owned() };
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {third} | {} | {} |",
            row.name,
            row.kind.word(),
            default(row),
            row.bounds.words().replace('|', "\\|"),
            acts(row.meaning),
            row.doc(),
        );
    }
    out.push('\n');
}

fn default(row: &Row) -> String {
    match row.default_text() {
        None => "none".to_owned(),
        Some(text) if text.is_empty() => "empty".to_owned(),
        Some(text) if row.kind == Kind::Long && text == i64::MAX.to_string() => "2^63 - 1".into(),
        Some(text) => format!("`{text}`"),
    }
}

fn behind(row: &Row) -> String {
    let names = row.broker.iter().filter(|name| keys::broker(name).is_some());
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn changes(scope: Scope) -> &'static str {
    match scope {
        Scope::ReadOnly => "start",
        Scope::PerBroker => "broker",
        Scope::Cluster => "cluster",
        Scope::DynamicOnly => "run",
        Scope::Resource => "",
    }
}

fn acts(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Acts => "yes",
        Meaning::Later => "later",
        Meaning::Never => "no",
    }
}
