//! What must be true of the table itself.

use std::collections::BTreeSet;

use super::*;
use crate::config::row::Bounds;

/// Every table: its name and its rows.
fn tables() -> [(&'static str, Vec<&'static Row>); 4] {
    [
        ("broker", keys::broker_rows().collect()),
        ("topic", keys::topic::ROWS.iter().collect()),
        ("group", keys::group::ROWS.iter().collect()),
        ("client metrics", keys::client_metrics::ROWS.iter().collect()),
    ]
}

#[test]
fn names_are_there_once() {
    for (table, rows) in tables() {
        let names: BTreeSet<&str> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), rows.len(), "{table}");
    }
}

#[test]
fn as_many_as_in_kafka() {
    let count =
        |rows: &[&Row], internal| rows.iter().filter(|row| row.internal == internal).count();
    let [(_, broker), (_, topic), (_, group), (_, metrics)] = tables();
    let dynamic_only = broker.iter().filter(|row| row.scope == Scope::DynamicOnly).count();
    assert_eq!(count(&broker, false) - dynamic_only, 350);
    assert_eq!(dynamic_only, 3);
    assert_eq!(count(&broker, true) - 1, 29, "and http.listen");
    assert_eq!((count(&topic, false), count(&topic, true)), (37, 1));
    assert_eq!((count(&group, false), count(&group, true)), (21, 6));
    assert_eq!((count(&metrics, false), count(&metrics, true)), (3, 0));
}

#[test]
fn defaults_are_values() {
    for (table, rows) in tables() {
        for row in rows {
            let Some(text) = row.default_text() else { continue };
            let read = row.parse(&text).map(|value| value.show());
            assert_eq!(read, Ok(text), "{table} {}", row.name);
        }
    }
}

#[test]
fn every_setting_is_explained_in_a_sentence() {
    for (table, rows) in tables() {
        for row in rows {
            let doc = row.doc();
            let good = doc.ends_with('.') && doc.len() > 20 && doc.len() < 240;
            assert!(good && !doc.contains(". "), "{table} {}: {doc}", row.name);
        }
    }
}

/// A topic setting and the broker setting behind it take the same values.
#[test]
fn what_stands_behind_a_setting_fits_it() {
    for row in keys::topic::ROWS.iter().chain(&keys::group::ROWS) {
        for name in row.broker {
            let Some(behind) = keys::broker(name) else {
                assert_eq!(*name, row.name, "only a setting of its own name may be missing");
                continue;
            };
            let alike = match (behind.kind, row.kind) {
                (left, right) if left == right => true,
                (Kind::Int, Kind::Long) => name.ends_with(".hours") || name.ends_with(".minutes"),
                (Kind::List, Kind::String) => row.name == "streams.assignor.name",
                _ => false,
            };
            assert!(alike, "{} and {name}", row.name);
            if let (Bounds::AtLeast(ours), Some(Value::Int(theirs))) = (row.bounds, &behind.default)
            {
                assert!(*theirs >= ours, "{} and {name}", row.name);
            }
        }
    }
}

#[test]
fn defaults_of_topics_are_those_of_brokers() {
    let dynamic = DynamicConfig::of(Arc::new(Config::defaults()));
    for row in &keys::topic::ROWS {
        let config = dynamic.topic_config(&super::described::configs(""));
        let held = config.value(row).map(Value::show);
        assert_eq!(held, row.default_text(), "{}", row.name);
    }
}
