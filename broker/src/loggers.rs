//! Levels of the log by subject, changed while the broker runs (the BROKER_LOGGER resource).

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// The level of everything that has none of its own.
pub const ROOT: &str = "root";

/// Subjects that exist from the start: the parts of the broker.
const SUBJECTS: [&str; 7] = [
    "broker.apis",
    "broker.groups",
    "broker.net",
    "broker.partition",
    "broker.quorum",
    "kraft",
    "storage",
];

/// Puts levels into force.
pub type Apply = Box<dyn Fn(&BTreeMap<String, String>) + Send + Sync>;

/// The levels now, in Kafka's words: FATAL, ERROR, WARN, INFO, DEBUG, TRACE.
pub struct Loggers {
    /// `None` follows the root.
    levels: Mutex<BTreeMap<String, Option<String>>>,
    apply: Apply,
}

impl Loggers {
    /// Everything at INFO; `apply` is called after each change.
    pub fn new(apply: Apply) -> Loggers {
        let mut levels: BTreeMap<String, Option<String>> =
            SUBJECTS.iter().map(|name| ((*name).to_owned(), None)).collect();
        levels.insert(ROOT.to_owned(), Some("INFO".to_owned()));
        Loggers { levels: Mutex::new(levels), apply }
    }

    /// Every subject with the level that holds for it.
    pub fn levels(&self) -> BTreeMap<String, String> {
        let levels = self.levels.lock();
        let root = levels.get(ROOT).cloned().flatten().unwrap_or_else(|| "INFO".to_owned());
        let effective = |(name, level): (&String, &Option<String>)| {
            (name.clone(), level.clone().unwrap_or_else(|| root.clone()))
        };
        levels.iter().map(effective).collect()
    }

    /// Takes over changed levels, checked before; `None` follows the root again.
    pub fn change(&self, changes: Vec<(String, Option<String>)>) {
        self.levels.lock().extend(changes);
        (self.apply)(&self.levels());
    }
}

/// The levels as a filter of the log.
pub fn directives(levels: &BTreeMap<String, String>) -> String {
    let word = |level: &str| match level {
        "FATAL" | "ERROR" => "error",
        "WARN" => "warn",
        "DEBUG" => "debug",
        "TRACE" => "trace",
        _ => "info",
    };
    let parts = levels.iter().map(|(name, level)| {
        // Kafka's tools take dots in names, not colons.
        let target = name.replace('.', "::");
        if name == ROOT { word(level).to_owned() } else { format!("{target}={}", word(level)) }
    });
    parts.collect::<Vec<_>>().join(",")
}

/// One line of the log for what may happen a thousand times a second.
#[derive(Default)]
pub struct Seldom {
    next_ms: i64,
    left_out: usize,
}

impl Seldom {
    const EVERY_MS: i64 = 10_000;

    /// Whether to say it now; then how often it was not said before.
    pub fn say(&mut self, now_ms: i64) -> Option<usize> {
        if now_ms < self.next_ms {
            self.left_out += 1;
            return None;
        }
        self.next_ms = now_ms.saturating_add(Self::EVERY_MS);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::{Loggers, directives};

    #[test]
    fn levels_become_a_filter() {
        let loggers = Loggers::new(Box::new(|_| {}));
        loggers.change(vec![("storage".into(), Some("TRACE".into()))]);
        let text = directives(&loggers.levels());
        assert!(
            text.contains("storage=trace") && text.contains("kraft=info,info,storage=trace"),
            "{text}"
        );
    }

    #[test]
    fn what_happens_often_is_said_seldom() {
        let mut seldom = super::Seldom::default();
        let said = [0, 1, 9_999, 10_000, 10_001, 30_000].map(|now_ms| seldom.say(now_ms));
        assert_eq!(said, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
