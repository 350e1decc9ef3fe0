//! Answers of a running broker to requests that no client library would send: the same thing named
//! twice, nothing named, numbers out of range. What they must be was seen on Kafka 4.4.

mod admin;
mod groups;
mod node;
mod offsets;
mod records;
