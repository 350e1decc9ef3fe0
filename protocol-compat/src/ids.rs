//! Names and ids: topic ids as text, partitions, legal topic names, the coordinator hash.
//!
//! Whether a topic exists, and who coordinates what, is decided elsewhere.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

/// The longest legal topic name, in bytes (Kafka `Topic.MAX_NAME_LENGTH`).
pub const TOPIC_NAME_MAX: usize = 249;

/// A topic id as Kafka prints it: 22 characters of base64url without padding.
pub fn topic_id_text(id: Uuid) -> String {
    URL_SAFE_NO_PAD.encode(id.as_bytes())
}

/// Reads what [`topic_id_text`] writes; `None` for anything that is not exactly 16 bytes.
pub fn parse_topic_id(text: &str) -> Option<Uuid> {
    if text.len() != 22 {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    Uuid::from_slice(&bytes).ok()
}

/// One partition of a topic. Orders by topic, then by partition number; shown as `topic-3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    pub topic: Arc<str>,
    pub partition: i32,
}

impl TopicPartition {
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> TopicPartition {
        TopicPartition { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// Whether a topic may bear this name; the error says which rule it breaks (Kafka
/// `Topic.validate`).
pub fn valid_topic_name(name: &str) -> Result<(), &'static str> {
    let legal = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    match name {
        "" => Err("a topic name must not be empty"),
        "." | ".." => Err("a topic name must not be \".\" or \"..\""),
        _ if name.len() > TOPIC_NAME_MAX => Err("a topic name must not exceed 249 characters"),
        _ if !name.bytes().all(legal) => {
            Err("a topic name may hold only ASCII letters, digits, '.', '_' and '-'")
        }
        _ => Ok(()),
    }
}

/// Whether two topic names become the same metric name: `.` and `_` count as equal
/// (Kafka `Topic.hasCollision`). Equal names collide.
pub fn names_collide(a: &str, b: &str) -> bool {
    let unify = |c: u8| if c == b'.' { b'_' } else { c };
    a.len() == b.len() && a.bytes().map(unify).eq(b.bytes().map(unify))
}

/// Java's `String.hashCode`: 31-based, over UTF-16 units, wrapping.
pub fn java_string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// The partition of a coordinator topic that owns `key`: the absolute value of the Java hash
/// (`i32::MIN` counts as 0, Kafka `Utils.abs`) modulo `partitions`, which must be positive.
pub fn coordinator_partition(key: &str, partitions: i32) -> i32 {
    assert!(partitions > 0, "a coordinator topic has at least one partition");
    java_string_hash(key).checked_abs().unwrap_or(0) % partitions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_ids_read_back() {
        for id in [
            Uuid::nil(),
            Uuid::from_u128(1),
            Uuid::from_u128(u128::MAX),
            Uuid::from_u128(0xfb << 120),
        ] {
            let text = topic_id_text(id);
            assert_eq!(text.len(), 22);
            assert_eq!(parse_topic_id(&text), Some(id));
        }
        assert_eq!(topic_id_text(Uuid::nil()), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(topic_id_text(Uuid::from_u128(1)), "AAAAAAAAAAAAAAAAAAAAAQ");
        for bad in [
            "",
            "A",
            "AAAAAAAAAAAAAAAAAAAAAA==",
            "AAAAAAAAAAAAAAAAAAAAA!",
            "AAAAAAAAAAAAAAAAAAAAAB",
        ] {
            assert_eq!(parse_topic_id(bad), None, "{bad}");
        }
    }

    #[test]
    fn topic_names() {
        for good in ["a", "a.b", "A_b-9", "...", "__consumer_offsets", &"x".repeat(249)] {
            assert_eq!(valid_topic_name(good), Ok(()), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a b", "\u{e9}", "a:b", "a\0", &"x".repeat(250)] {
            assert!(valid_topic_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn collisions() {
        for (a, b, want) in [
            ("a.b", "a_b", true),
            ("a.b", "a.b", true),
            ("a.b_c", "a_b.c", true),
            ("a-b", "a_b", false),
            ("a.b", "a.bc", false),
        ] {
            assert_eq!(names_collide(a, b), want, "{a} {b}");
        }
    }

    #[test]
    fn java_hashes() {
        for (text, want) in [
            ("", 0),
            ("a", 97),
            ("hello", 99_162_322),
            ("polygenelubricants", i32::MIN),
            ("\u{e9}", 233),
            ("\u{1f600}", 1_772_899), // Two UTF-16 units: d83d de00.
        ] {
            assert_eq!(java_string_hash(text), want, "{text}");
        }
        assert_eq!(coordinator_partition("polygenelubricants", 50), 0);
        assert_eq!(coordinator_partition("hello", 50), 22);
    }

    #[test]
    fn partitions_print_and_sort() {
        let mut all = [
            TopicPartition::new("b", 0),
            TopicPartition::new("a", 10),
            TopicPartition::new("a", 9),
        ];
        all.sort();
        let shown: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["a-9", "a-10", "b-0"]);
    }
}
