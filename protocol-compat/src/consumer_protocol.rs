//! The two blobs that classic consumers hide in the group protocol: subscription and assignment.
//!
//! Only what a broker has use for: topics and partitions. A newer version is read as far as it is
//! known, and what follows is not looked at (Kafka `ConsumerProtocol`). Neither blob is the
//! broker's to refuse: members of other protocol types put there what they like.

use bytes::{BufMut, Bytes, BytesMut};

use crate::wire::{Reader, put_len, put_nullable_bytes, put_string, text};

/// The topics that a member asks for, in its order; from `JoinGroup`'s protocol metadata.
///
/// `None` if the bytes are no `ConsumerProtocolSubscription`: then it is not known which.
pub fn subscribed_topics(subscription: &[u8]) -> Option<Vec<String>> {
    let mut reader = versioned(subscription)?;
    let count = reader.count(false, 2).ok()?;
    (0..count).map(|_| string(&mut reader)).collect()
}

/// The partitions that a member was given, by topic and in the leader's order; from `SyncGroup`.
/// An empty blob gives no partitions; `None` if the bytes are no `ConsumerProtocolAssignment`.
pub fn assigned_partitions(assignment: &[u8]) -> Option<Vec<(String, Vec<i32>)>> {
    if assignment.is_empty() {
        return Some(Vec::new());
    }
    let mut reader = versioned(assignment)?;
    let count = reader.count(false, 6).ok()?;
    (0..count)
        .map(|_| {
            let topic = string(&mut reader)?;
            let count = reader.count(false, 4).ok()?;
            let partitions = (0..count).map(|_| reader.i32().ok()).collect::<Option<_>>()?;
            Some((topic, partitions))
        })
        .collect()
}

/// A subscription of version 0, without user data.
pub fn encode_subscription(topics: &[&str]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(0);
    put_len(&mut out, false, Some(topics.len()));
    for topic in topics {
        put_string(&mut out, false, topic);
    }
    put_nullable_bytes(&mut out, false, None);
    out.freeze()
}

/// An assignment of version 0, without user data.
pub fn encode_assignment(partitions: &[(&str, &[i32])]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(0);
    put_len(&mut out, false, Some(partitions.len()));
    for (topic, partitions) in partitions {
        put_string(&mut out, false, topic);
        put_len(&mut out, false, Some(partitions.len()));
        partitions.iter().for_each(|partition| out.put_i32(*partition));
    }
    put_nullable_bytes(&mut out, false, None);
    out.freeze()
}

/// A reader behind the version, which must not be negative.
fn versioned(bytes: &[u8]) -> Option<Reader<'_>> {
    let mut reader = Reader::new(bytes);
    reader.i16().ok().filter(|version| *version >= 0).map(|_| reader)
}

fn string(reader: &mut Reader<'_>) -> Option<String> {
    reader.string(false).ok().map(|bytes| text(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unhex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().chunks(2);
        digits.map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
    }

    /// Topics a and b, one byte of user data, partitions a-0 and a-1 owned, generation 7, rack r;
    /// assigned a-0, a-1 and b-2: as the Java client writes them.
    #[test]
    fn reads_what_the_java_client_writes() {
        let front = "0000000200016100016200000001 09".replace(' ', "");
        let owned = "00000001000161000000020000000000000001";
        for (version, rest) in [
            ("0000", String::new()),
            ("0001", owned.to_owned()),
            ("0002", format!("{owned}00000007")),
            ("0003", format!("{owned}00000007000172")),
            ("0009", format!("{owned}00000007000172ffff")),
            ("0003", "ff".to_owned()),
        ] {
            let bytes = unhex(&format!("{version}{front}{rest}"));
            assert_eq!(subscribed_topics(&bytes), Some(vec!["a".to_owned(), "b".to_owned()]));
        }
        let assigned = "00000002000161000000020000000000000001000162000000010000000200000001 09";
        for version in ["0000", "0003", "0009"] {
            let bytes = unhex(&format!("{version}{assigned}").replace(' ', ""));
            let want = vec![("a".to_owned(), vec![0, 1]), ("b".to_owned(), vec![2])];
            assert_eq!(assigned_partitions(&bytes), Some(want));
        }
    }

    #[test]
    fn refuses_what_is_neither() {
        for bad in
            ["", "00", "0000", "ffff00000000", "00007fffffff", "0000ffffffff", "000000000001"]
        {
            assert!(subscribed_topics(&unhex(bad)).is_none(), "{bad}");
            assert_eq!(assigned_partitions(&unhex(bad)).is_none(), !bad.is_empty(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(
            topics in prop::collection::vec("[a-z]{0,9}", 0..5),
            numbers in prop::collection::vec(any::<i32>(), 0..5),
        ) {
            let names: Vec<&str> = topics.iter().map(String::as_str).collect();
            prop_assert_eq!(subscribed_topics(&encode_subscription(&names)), Some(topics.clone()));
            let given = names.iter().map(|name| (*name, &numbers[..]));
            let parts: Vec<(&str, &[i32])> = given.collect();
            let want = topics.iter().map(|topic| (topic.clone(), numbers.clone())).collect();
            prop_assert_eq!(assigned_partitions(&encode_assignment(&parts)), Some(want));
        }

        #[test]
        fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = subscribed_topics(&noise);
            let _ = assigned_partitions(&noise);
        }
    }
}
