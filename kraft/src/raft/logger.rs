//! Routes what raft-rs logs (slog) to `tracing`. One level lower than raft-rs thinks: its "info" is
//! each late message and each vote.

use std::fmt::{self, Write};

use slog::{Drain, KV, Level, Logger, Never, OwnedKVList, Record, Serializer};

const TARGET: &str = "gracchus::raft";

/// The logger for one node.
pub(super) fn logger() -> Logger {
    Logger::root(ToTracing, slog::o!())
}

struct ToTracing;

impl Drain for ToTracing {
    type Ok = ();
    type Err = Never;

    fn log(&self, record: &Record<'_>, values: &OwnedKVList) -> Result<(), Never> {
        match record.level() {
            Level::Critical | Level::Error => {
                tracing::error!(target: TARGET, "{}", text(record, values));
            }
            Level::Warning if tracing::enabled!(target: TARGET, tracing::Level::WARN) => {
                tracing::warn!(target: TARGET, "{}", text(record, values));
            }
            Level::Info if tracing::enabled!(target: TARGET, tracing::Level::DEBUG) => {
                tracing::debug!(target: TARGET, "{}", text(record, values));
            }
            Level::Debug if tracing::enabled!(target: TARGET, tracing::Level::TRACE) => {
                tracing::trace!(target: TARGET, "{}", text(record, values));
            }
            // slog's own trace level prints whole entries, bytes included.
            Level::Warning | Level::Info | Level::Debug | Level::Trace => {}
        }
        Ok(())
    }
}

fn text(record: &Record<'_>, values: &OwnedKVList) -> String {
    let mut text = Text(record.msg().to_string());
    // A value that cannot be written leaves the line short; there is nobody to tell.
    let _ = record.kv().serialize(record, &mut text);
    let _ = values.serialize(record, &mut text);
    text.0
}

struct Text(String);

impl Serializer for Text {
    fn emit_arguments(&mut self, key: slog::Key, value: &fmt::Arguments<'_>) -> slog::Result {
        write!(self.0, " {key}={value}")?;
        Ok(())
    }
}
