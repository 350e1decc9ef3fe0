//! Where two observations differ, by path, and the differences that are known and pinned.

use serde_json::{Value, json};

use super::rules::IDENTITIES;

/// What stands for a value that one side lacks.
pub fn absent() -> Value {
    json!("(absent)")
}

/// One difference: where, what Kafka has, what the broker under test has.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub path: String,
    pub kafka: Value,
    pub ours: Value,
}

/// Where `ours` is not as `kafka`. Where Kafka fails by accident (UNKNOWN_SERVER_ERROR, or no
/// answer at all), any definite refusal is as good.
pub fn differences(kafka: &Value, ours: &Value) -> Vec<Difference> {
    let mut out = Vec::new();
    walk(String::new(), kafka, ours, &mut out);
    out
}

fn walk(path: String, kafka: &Value, ours: &Value, out: &mut Vec<Difference>) {
    if kafka == ours || *kafka == json!("NO ANSWER") && is_refusal(ours) {
        return;
    }
    match (kafka, ours) {
        (Value::Object(left), Value::Object(right)) => {
            let accident = kafka["ErrorCode"] == json!(-1) && is_refusal(&ours["ErrorCode"]);
            let names = left.keys().chain(right.keys().filter(|name| !left.contains_key(*name)));
            for name in names {
                if accident && (name == "ErrorCode" || name == "ErrorMessage") {
                    continue;
                }
                let side = |side: &serde_json::Map<String, Value>| {
                    side.get(name).cloned().unwrap_or_else(absent)
                };
                let dot = if path.is_empty() { "" } else { "." };
                walk(format!("{path}{dot}{name}"), &side(left), &side(right), out);
            }
        }
        (Value::Array(left), Value::Array(right)) => lists(&path, left, right, out),
        _ => out.push(Difference { path, kafka: kafka.clone(), ours: ours.clone() }),
    }
}

fn lists(path: &str, left: &[Value], right: &[Value], out: &mut Vec<Difference>) {
    if let (Some(named_left), Some(named_right)) = (named(left), named(right)) {
        let extra = named_right.iter().filter(|(name, _)| get(&named_left, name).is_none());
        for (name, _) in named_left.iter().chain(extra) {
            let side = |side: &[(String, Value)]| get(side, name).unwrap_or_else(absent);
            walk(format!("{path}[{name}]"), &side(&named_left), &side(&named_right), out);
        }
        return;
    }
    for at in 0..left.len().max(right.len()) {
        let side = |side: &[Value]| side.get(at).cloned().unwrap_or_else(absent);
        walk(format!("{path}[{at}]"), &side(left), &side(right), out);
    }
}

fn get(side: &[(String, Value)], wanted: &str) -> Option<Value> {
    side.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
}

/// The items by what identifies them; none if that does not tell them apart.
fn named(items: &[Value]) -> Option<Vec<(String, Value)>> {
    let mut out: Vec<(String, Value)> = Vec::new();
    for item in items {
        let identity = IDENTITIES.iter().map(|name| &item[name]);
        let mut identity = identity.filter(|value| value.is_string() || value.is_i64());
        let name = match identity.next()? {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if out.iter().any(|(other, _)| *other == name) {
            return None;
        }
        out.push((name, item.clone()));
    }
    Some(out)
}

/// Whether an answer, or an error code, refuses.
fn is_refusal(value: &Value) -> bool {
    match value {
        Value::Number(code) => code.as_i64() != Some(0),
        Value::String(text) => text == "CLOSED" || text == "NO ANSWER",
        Value::Array(items) => items.iter().any(is_refusal),
        Value::Object(fields) => fields.iter().any(|(name, value)| match value {
            Value::Number(_) => name.ends_with("ErrorCode") && is_refusal(value),
            other => is_refusal(other),
        }),
        Value::Bool(_) | Value::Null => false,
    }
}

/// Differences that are wanted: for a case, what stands at a path on our side, and the row of
/// `docs/differences.md` that says why. A `*` in the case or the path stands for any text; with one
/// in the path the pin is for the cases that have such a difference, without for all it names.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    pub case: String,
    pub path: String,
    pub ours: Value,
    pub why: String,
}

impl Pin {
    pub fn is_about(&self, case: &str) -> bool {
        fits(&self.case, case)
    }

    /// Whether it means this difference.
    pub fn means(&self, difference: &Difference) -> bool {
        fits(&self.path, &difference.path) && self.ours == difference.ours
    }

    /// Whether each case that it is about must have the difference.
    pub fn is_strict(&self) -> bool {
        !self.path.contains('*')
    }
}

/// Whether a text is as a pattern has it, where `*` is any text.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, rest)) => {
            let Some(tail) = text.strip_prefix(head) else { return false };
            let ends = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
            ends.into_iter().any(|at| fits(rest, &tail[at..]))
        }
    }
}

/// Reads pins: blocks of `why: TEXT` followed by lines `CASE :: PATH :: JSON`.
pub fn parse_pins(text: &str) -> Vec<Pin> {
    let mut out = Vec::new();
    let mut why = String::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(reason) = line.strip_prefix("why: ") {
            why = reason.to_owned();
            continue;
        }
        let mut parts = line.splitn(3, " :: ").map(str::to_owned);
        let (Some(case), Some(path), Some(ours)) = (parts.next(), parts.next(), parts.next())
        else {
            panic!("a pin is CASE :: PATH :: JSON, not {line}");
        };
        let ours = serde_json::from_str(&ours).unwrap_or_else(|e| panic!("{line}: {e}"));
        out.push(Pin { case, path, ours, why: why.clone() });
    }
    out
}

/// A difference as a pin's line.
pub fn pin_line(case: &str, difference: &Difference) -> String {
    format!("{case} :: {} :: {}", difference.path, difference.ours)
}

#[cfg(test)]
mod tests;
