//! The differential tester: small cases over raw connections, run against Apache Kafka and against
//! the broker under test, compared field by field.
//!
//! `table` reads the fields of all messages, `codec` makes requests and reads answers by it, `conn`
//! carries them, `batch` makes and reads record batches. A case (`cases`) gets a `context`, takes
//! steps and yields observations; `rules` says what in them may differ, `compare` where they do,
//! `run` runs, records and replays, `disk` looks at what is left on the disks. How to use it:
//! `compat-tests/recorded/README.md`.

pub mod batch;
pub mod cases;
pub mod codec;
pub mod compare;
pub mod conn;
pub mod context;
pub mod disk;
pub mod rules;
pub mod run;
pub mod table;
