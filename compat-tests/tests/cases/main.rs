//! What once broke other brokers or their clients, byte by byte against the built broker. The list
//! of all of it, with the tests of other packages, is docs/cases.md.
//!
//! With KAFKA_BOOTSTRAP the tests that need no broker of their own run against that one.

mod admin;
mod configs;
mod fetch;
mod framing;
mod groups;
mod metadata;
mod offsets;
mod produce;
mod restarts;
mod sessions;

use std::sync::OnceLock;

use compat_tests::broker::Broker;
use compat_tests::differ::context::{T, dig};
use compat_tests::settings::unique;
use serde_json::Value;

fn broker() -> &'static str {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    &BROKER.get_or_init(Broker::shared).bootstrap
}

/// A context on the broker that all tests share; its names are new in every run.
fn case(name: &str) -> T {
    T::new(broker(), &unique(name), 0)
}

/// The whole number at a JSON pointer.
#[track_caller]
fn number(answer: &Value, pointer: &str) -> i64 {
    let found = answer.pointer(pointer).and_then(Value::as_i64);
    found.unwrap_or_else(|| panic!("no number at {pointer} in {answer}"))
}

/// The error codes of all structs in the list at a JSON pointer.
#[track_caller]
fn codes(answer: &Value, pointer: &str) -> Vec<i64> {
    let list = answer.pointer(pointer).and_then(Value::as_array);
    let list = list.unwrap_or_else(|| panic!("no list at {pointer} in {answer}"));
    list.iter().map(|item| number(item, "/ErrorCode")).collect()
}

/// The error code of the answer to a Produce, a Fetch and the like about one partition.
#[track_caller]
fn code(answer: &Value) -> i64 {
    number(answer, "/ErrorCode")
}

/// The record batches of a fetched partition.
fn batches(partition: &Value) -> Vec<Value> {
    use compat_tests::differ::{batch, codec};
    let bytes = codec::bytes_of(&dig(partition, "/Records")).unwrap_or_default();
    batch::parse(&bytes).as_array().cloned().unwrap_or_default()
}
