//! One value: read from text by its type, checked against its bounds, shown as Kafka shows it.
//! Where the text comes from and what happens to a bad one is the caller's affair.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::duration;
use super::row::{Bounds, Kind, Row};

/// A value that was read and checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    /// Short, int and long alike; the row's type bounds it.
    Int(i64),
    Double(f64),
    /// Strings, class names, passwords, and lists joined by commas.
    Text(Cow<'static, str>),
}

impl Value {
    pub(super) const fn borrowed(text: &'static str) -> Value {
        Value::Text(Cow::Borrowed(text))
    }

    /// The text as DescribeConfigs shows it.
    pub fn show(&self) -> String {
        match self {
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Double(value) => show_double(*value),
            Value::Text(value) => value.to_string(),
        }
    }
}

/// The elements of a list value; an empty text is an empty list.
pub fn elements(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(move |_| !list.trim().is_empty())
}

/// Why a text is not a value of a row. The words say what is allowed and follow "must be".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    #[error("must be {0}")]
    Unreadable(String),
    #[error("must be {0}")]
    OutOfBounds(String),
}

impl Row {
    /// Reads and checks `text`.
    pub fn parse(&self, text: &str) -> Result<Value, BadValue> {
        let value = parse_kind(self.kind, text.trim()).map_err(BadValue::Unreadable)?;
        let gaps = self.kind == Kind::List && elements(text).any(str::is_empty);
        let gaps_allowed = matches!(self.bounds, Bounds::Any | Bounds::ThrottledReplicas);
        if in_bounds(&self.bounds, &value) && (gaps_allowed || !gaps) {
            Ok(value)
        } else {
            Err(BadValue::OutOfBounds(self.bounds.words()))
        }
    }

    /// The default as DescribeConfigs shows it; `None` for null and for passwords.
    pub fn default_text(&self) -> Option<String> {
        self.default.as_ref().filter(|_| !self.sensitive()).map(Value::show)
    }
}

fn parse_kind(kind: Kind, text: &str) -> Result<Value, String> {
    match kind {
        Kind::Boolean => {
            if text.eq_ignore_ascii_case("true") {
                Ok(Value::Bool(true))
            } else if text.eq_ignore_ascii_case("false") {
                Ok(Value::Bool(false))
            } else {
                Err("true or false".to_owned())
            }
        }
        Kind::Short => parse_int(text, i64::from(i16::MIN), i64::from(i16::MAX)),
        Kind::Int => parse_int(text, i64::from(i32::MIN), i64::from(i32::MAX)),
        Kind::Long => parse_int(text, i64::MIN, i64::MAX),
        Kind::Double => parse_double(text).ok_or_else(|| "a number".to_owned()),
        Kind::List => Ok(Value::Text(Cow::Owned(normal_list(text)))),
        Kind::Unknown | Kind::String | Kind::Class | Kind::Password => {
            Ok(Value::Text(Cow::Owned(text.to_owned())))
        }
    }
}

fn parse_int(text: &str, min: i64, max: i64) -> Result<Value, String> {
    match text.parse::<i64>() {
        Ok(value) if (min..=max).contains(&value) => Ok(Value::Int(value)),
        _ => Err(format!("a whole number from {min} to {max}")),
    }
}

/// Java's notation: digits, point, exponent, an optional `d` or `f` at the end.
fn parse_double(text: &str) -> Option<Value> {
    let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    if !plain {
        return None;
    }
    digits.parse().ok().map(Value::Double)
}

/// Elements trimmed, later repetitions dropped, joined by commas.
fn normal_list(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for element in elements(text) {
        if !kept.contains(&element) {
            kept.push(element);
        }
    }
    kept.join(",")
}

fn in_bounds(bounds: &Bounds, value: &Value) -> bool {
    match (bounds, value) {
        (Bounds::Any, _) => true,
        (Bounds::AtLeast(min), Value::Int(value)) => value >= min,
        (Bounds::Between(min, max), Value::Int(value)) => (min..=max).contains(&value),
        (Bounds::GzipLevel, Value::Int(value)) => *value == -1 || (1..=9).contains(value),
        (Bounds::Ratio(min, max), Value::Double(value)) => (min..=max).contains(&value),
        (_, Value::Text(text)) => text_in_bounds(bounds, text),
        (_, Value::Bool(_) | Value::Int(_) | Value::Double(_)) => false,
    }
}

fn text_in_bounds(bounds: &Bounds, text: &str) -> bool {
    match bounds {
        Bounds::OneOf(words) => words.contains(&text),
        Bounds::OneOfAnyCase(words) => words.iter().any(|word| word.eq_ignore_ascii_case(text)),
        Bounds::NonEmpty => !text.is_empty(),
        Bounds::ListOf(words) => elements(text).all(|element| words.contains(&element)),
        Bounds::List => true,
        Bounds::NonEmptyList => !text.is_empty(),
        Bounds::ThrottledReplicas => text == "*" || elements(text).all(is_replica_pair),
        Bounds::OffsetReset => is_offset_reset(text),
        Bounds::Any
        | Bounds::AtLeast(_)
        | Bounds::Between(..)
        | Bounds::GzipLevel
        | Bounds::Ratio(..) => false,
    }
}

/// `partition:broker`; an empty element is let through, as Kafka does.
fn is_replica_pair(text: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.is_empty() || text.split_once(':').is_some_and(|(p, b)| number(p) && number(b))
}

fn is_offset_reset(text: &str) -> bool {
    match text.strip_prefix("by_duration:") {
        Some(span) => duration::parse_ms(span).is_some_and(|ms| ms >= 0),
        None => text == "latest" || text == "earliest",
    }
}

impl Bounds {
    /// What is allowed, in a form that follows "must be"; empty when everything is.
    pub fn words(&self) -> String {
        match self {
            Bounds::Any => String::new(),
            Bounds::AtLeast(min) => format!("at least {min}"),
            Bounds::Between(min, max) => format!("from {min} to {max}"),
            Bounds::GzipLevel => "from 1 to 9, or -1".to_owned(),
            Bounds::Ratio(min, max) => {
                format!("from {} to {}", show_double(*min), show_double(*max))
            }
            Bounds::OneOf(words) => format!("one of {}", words.join(", ")),
            Bounds::OneOfAnyCase(words) => format!("one of {}, in any case", words.join(", ")),
            Bounds::NonEmpty => "not empty".to_owned(),
            Bounds::ListOf(words) => format!("a list of {}", words.join(", ")),
            Bounds::List => "a list without empty elements".to_owned(),
            Bounds::NonEmptyList => "a list with at least one element, none empty".to_owned(),
            Bounds::ThrottledReplicas => "* or a list of partition:broker pairs".to_owned(),
            Bounds::OffsetReset => {
                "latest, earliest, or by_duration: and an ISO 8601 duration".to_owned()
            }
        }
    }
}

/// As `Double.toString` in Java: at least one digit after the point, and `E` notation below
/// 0.001 and from ten million on.
fn show_double(value: f64) -> String {
    if value == 0.0 || !value.is_finite() || (1e-3..1e7).contains(&value.abs()) {
        return match value {
            f64::INFINITY => "Infinity".to_owned(),
            f64::NEG_INFINITY => "-Infinity".to_owned(),
            value => format!("{value:?}"),
        };
    }
    let short = format!("{value:e}");
    let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
    let mut out = digits.to_owned();
    if !digits.contains('.') {
        out.push_str(".0");
    }
    // Writing to a string cannot fail.
    let _ = write!(out, "E{exponent}");
    out
}
