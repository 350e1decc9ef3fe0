//! Which topic names a new topic may have, with the texts that Apache Kafka gives.

use protocol_compat::error::ErrorCode;
use protocol_compat::ids::{TOPIC_NAME_MAX, names_collide, valid_topic_name};

use super::request::Refusal;
use crate::image::Image;

/// Refuses names that no topic may have with INVALID_TOPIC_EXCEPTION.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    if valid_topic_name(name).is_ok() {
        return Ok(());
    }
    let why = match name {
        "" => "the empty string is not allowed".to_string(),
        "." | ".." => format!("'{name}' is not allowed"),
        _ if name.encode_utf16().count() > TOPIC_NAME_MAX => {
            format!("the length of '{name}' is longer than the max allowed length {TOPIC_NAME_MAX}")
        }
        _ => format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and \
             '-'"
        ),
    };
    let text = format!("Topic name is invalid: {why}");
    Err(Refusal::new(ErrorCode::InvalidTopicException, text))
}

/// An existing topic whose name differs from `name` by `.` and `_` alone.
///
/// Such names agree up to their first `.` or `_`, so only two ranges of names are looked at.
pub fn colliding<'a>(image: &'a Image, name: &str) -> Option<&'a str> {
    let head = &name[..name.find(['.', '_'])?];
    ['.', '_'].iter().find_map(|mark| {
        let prefix = format!("{head}{mark}");
        image
            .topics_from(&prefix)
            .map(|topic| &*topic.name)
            .take_while(|other| other.starts_with(&prefix))
            .find(|other| *other != name && names_collide(other, name))
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::Cluster;
    use super::*;

    #[test]
    fn bad_names_are_refused_with_kafkas_words() {
        let long = "x".repeat(250);
        let odd = |name: &str| {
            let why = "contains one or more characters other than ASCII alphanumerics";
            format!("'{name}' {why}, '.', '_' and '-'")
        };
        for (name, want) in [
            ("", "the empty string is not allowed"),
            ("..", "'..' is not allowed"),
            ("a b", &odd("a b")),
            ("\u{e9}", &odd("\u{e9}")),
            (&long, &format!("the length of '{long}' is longer than the max allowed length 249")),
        ] {
            let refusal = check_name(name).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::InvalidTopicException);
            assert_eq!(refusal.message, Some(format!("Topic name is invalid: {want}")));
        }
        assert_eq!(check_name("a.b_c-9"), Ok(()));
        assert_eq!(check_name(&"x".repeat(249)), Ok(()));
    }

    #[test]
    fn dots_and_underscores_collide() {
        let mut cluster = Cluster::new(1);
        for name in ["a.b", "c_d.e", ".x", "plain"] {
            cluster.create(name, 1, 1);
        }
        for (name, want) in [
            ("a_b", Some("a.b")),
            ("a.b", None), // Itself; that it exists is another error.
            ("a.bc", None),
            ("c.d_e", Some("c_d.e")),
            ("c_d_e", Some("c_d.e")),
            ("_x", Some(".x")),
            ("plain", None),
            ("aab", None),
        ] {
            assert_eq!(colliding(cluster.image(), name), want, "{name}");
        }
    }
}
