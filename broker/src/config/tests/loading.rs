//! Cases over loading: the file's notation, values, unknown keys, settings that must agree.

use proptest::prelude::*;

use super::*;
use crate::config::properties;

/// `want` is `key=value@line` per property, joined by `|`, or `bad@line`.
#[track_caller]
fn check_properties(text: &str, want: &str) {
    let found = match properties::parse(text) {
        Err(bad) => format!("bad@{}", bad.line),
        Ok(found) => {
            let each = found.iter().map(|p| format!("{}={}@{}", p.key, p.value, p.line));
            each.collect::<Vec<_>>().join("|")
        }
    };
    assert_eq!(found, want, "{text:?}");
}

#[test]
fn the_notation_is_javas() {
    let cases = [
        ("", ""),
        ("a=1", "a=1@1"),
        ("\u{feff}a=1", "a=1@1"),
        ("a = 1 ", "a=1 @1"),
        ("  a\t:\u{c} 1", "a=1@1"),
        ("a 1", "a=1@1"),
        ("a  = = 1", "a== 1@1"),
        ("a==1", "a==1@1"),
        ("a", "a=@1"),
        ("=1", "=1@1"),
        ("# c\n! d\n\n  # e\na=1", "a=1@5"),
        ("a=1\r\nb=2\rc=3\n", "a=1@1|b=2@2|c=3@3"),
        ("a=1\\\n   2\\\n\t3\nb=4", "a=123@1|b=4@4"),
        ("a=1\\\n# not a remark", "a=1# not a remark@1"),
        ("a=1\\\n\nb=2", "a=1@1|b=2@3"),
        ("a=1\\", "a=1@1"),
        ("a=1\\\\\nb=2", "a=1\\@1|b=2@2"),
        ("# c \\\na=1", "a=1@2"),
        ("a\\=b\\:c\\ d=1", "a=b:c d=1@1"),
        ("a=\\t\\n\\r\\f\\q\\\\", "a=\t\n\r\u{c}q\\@1"),
        ("a=\\u00e9\\uD83D\\uDE00", "a=\u{e9}\u{1f600}@1"),
        ("a=é", "a=é@1"),
        ("x=1\na=\\u12", "bad@2"),
        ("a=\\u12g4", "bad@1"),
        ("a=\\uD83D", "bad@1"),
        ("\\\n\\\n", ""),
        (
            "listener.name.x.sasl.jaas.config=org.example.Module required \\\n  user=\"a\";",
            "listener.name.x.sasl.jaas.config=org.example.Module required user=\"a\";@1",
        ),
    ];
    for (text, want) in cases {
        check_properties(text, want);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the text, reading ends, and lines are counted upwards.
    #[test]
    fn any_text_can_be_read(text in "(?s).{0,200}") {
        if let Ok(found) = properties::parse(&text) {
            prop_assert!(found.is_sorted_by(|a, b| a.line < b.line));
        }
        let _ = load(&text);
    }

    /// What is escaped as `Properties.store` does comes back.
    #[test]
    fn escaped_texts_come_back(
        key in "[a-z =:#!\\\\é]{1,12}",
        value in "[a-z =:#!\\\\\\té]{0,12}",
    ) {
        let escape = |text: &str| -> String {
            text.chars().flat_map(|c| match c {
                '\t' => vec!['\\', 't'],
                'a'..='z' => vec![c],
                other => vec!['\\', other],
            }).collect()
        };
        let found = properties::parse(&format!("{}={}", escape(&key), escape(&value)));
        let want = properties::Property { key, value, line: 1 };
        prop_assert_eq!(found, Ok(vec![want]));
    }
}

/// `want`: the value as it is shown, or `!` and how the error ends.
#[track_caller]
fn check_value(name: &str, text: &str, want: &str) {
    let rows = keys::broker(name).or_else(|| keys::topic_row(name));
    let row = rows.or_else(|| keys::group_row(name)).expect("a known name");
    let found = match row.parse(text) {
        Ok(value) => value.show(),
        Err(bad) => format!("!{bad}"),
    };
    assert_eq!(found, want, "{name}={text}");
}

#[test]
fn values_are_read_by_type_and_bounds() {
    let int = "!must be a whole number from -2147483648 to 2147483647";
    let long = "!must be a whole number from -9223372036854775808 to 9223372036854775807";
    let cases = [
        ("num.io.threads", " 5 ", "5"),
        ("num.io.threads", "+5", "5"),
        ("num.io.threads", "0", "!must be at least 1"),
        ("num.io.threads", "", int),
        ("num.io.threads", "5.0", int),
        ("num.io.threads", "0x5", int),
        ("num.io.threads", "99999999999", int),
        ("retention.ms", "99999999999999999999", long),
        ("retention.ms", "-2", "!must be at least -1"),
        (
            "offsets.topic.replication.factor",
            "32768",
            "!must be a whole number from -32768 to 32767",
        ),
        ("group.share.delivery.count.limit", "11", "!must be from 2 to 10"),
        ("compression.gzip.level", "0", "!must be from 1 to 9, or -1"),
        ("compression.gzip.level", "-1", "-1"),
        ("preallocate", " TRUE ", "true"),
        ("preallocate", "yes", "!must be true or false"),
        ("min.cleanable.dirty.ratio", "0.50", "0.5"),
        ("min.cleanable.dirty.ratio", "1", "1.0"),
        ("min.cleanable.dirty.ratio", "5e-4", "5.0E-4"),
        ("min.cleanable.dirty.ratio", "2", "!must be from 0.0 to 1.0"),
        ("min.cleanable.dirty.ratio", "nan", "!must be a number"),
        ("min.cleanable.dirty.ratio", "0x1p-1", "!must be a number"),
        ("log.cleaner.io.max.bytes.per.second", "12345678", "1.2345678E7"),
        ("log.cleaner.io.max.bytes.per.second", "1e10", "1.0E10"),
        ("log.cleaner.io.max.bytes.per.second", "1e300d", "1.0E300"),
        ("log.cleaner.io.max.bytes.per.second", "0", "0.0"),
        ("log.cleaner.io.max.bytes.per.second", "1000000", "1000000.0"),
        ("cleanup.policy", " compact , delete ", "compact,delete"),
        ("cleanup.policy", "compact,compact", "compact"),
        ("cleanup.policy", "", ""),
        ("cleanup.policy", ",", "!must be a list of compact, delete"),
        ("cleanup.policy", "compact,", "!must be a list of compact, delete"),
        ("cleanup.policy", "Compact", "!must be a list of compact, delete"),
        ("compression.type", " gzip ", "gzip"),
        (
            "compression.type",
            "GZIP",
            "!must be one of uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        ("group.consumer.migration.policy", "Upgrade", "Upgrade"),
        ("log.dirs", "", "!must be a list with at least one element, none empty"),
        ("leader.replication.throttled.replicas", "0:1,2:3", "0:1,2:3"),
        ("leader.replication.throttled.replicas", "*", "*"),
        (
            "leader.replication.throttled.replicas",
            "*,0:1",
            "!must be * or a list of partition:broker pairs",
        ),
        ("share.auto.offset.reset", "by_duration:P1DT2H", "by_duration:P1DT2H"),
        (
            "share.auto.offset.reset",
            "by_duration:-PT1S",
            "!must be latest, earliest, or by_duration: and an ISO 8601 duration",
        ),
    ];
    for (name, text, want) in cases {
        check_value(name, text, want);
    }
}

#[test]
fn durations_are_those_of_java() {
    let cases = [
        ("PT1H", Some(3_600_000)),
        ("p1dt2h3m4.5s", Some(93_784_500)),
        ("P2D", Some(172_800_000)),
        ("PT-6H3M", Some(-21_420_000)),
        ("-PT1S", Some(-1000)),
        ("+PT1,25S", Some(1250)),
        ("PT-0.5S", Some(-500)),
        ("PT1.S", Some(1000)),
        ("PT0.0009S", Some(0)),
        ("P", None),
        ("PT", None),
        ("P1DT", None),
        ("P1W", None),
        ("PT1M1H", None),
        ("1H", None),
        ("PT1", None),
        ("PTS", None),
        ("PT1.1234567890S", None),
        ("P99999999999999999999D", None),
        ("P9223372036854775807D", None),
    ];
    for (text, want) in cases {
        assert_eq!(parse_duration_ms(text), want, "{text}");
    }
}

/// What is said about a good configuration, one remark a line.
#[track_caller]
fn check_notices(text: &str, want: &[&str]) {
    let notices: Vec<String> = good(text).notices.iter().map(ToString::to_string).collect();
    assert_eq!(notices, want, "{text}");
}

#[test]
fn remarks_at_start() {
    check_notices("num.partitions=3\n\n#x\nlog.retention.hours=5", &[]);
    check_notices(
        "\nnum.partition=3",
        &["server.properties:2: num.partition is unknown and ignored; did you mean \
             num.partitions?"],
    );
    check_notices("my.plugin=3", &["server.properties:1: my.plugin is unknown and ignored"]);
    check_notices(
        "htpp.listen=x:1",
        &["server.properties:1: htpp.listen is unknown and ignored; did you mean http.listen?"],
    );
    check_notices(
        "retention.ms=5",
        &["server.properties:1: retention.ms is a topic setting; for all topics set \
           log.retention.ms or log.retention.minutes or log.retention.hours"],
    );
    check_notices(
        "zookeeper.connect=x:1\ninter.broker.protocol.version=3.0",
        &[
            "server.properties:2: inter.broker.protocol.version was removed in Kafka 4.0 and is \
             ignored",
            "server.properties:1: zookeeper.connect was removed in Kafka 4.0 and is ignored",
        ],
    );
    check_notices(
        "leader.replication.throttled.rate=1",
        &["server.properties:1: leader.replication.throttled.rate can only be changed while the \
           broker runs and is ignored here"],
    );
    check_notices("num.io.threads=8\nnum.network.threads=3", &[]);
    check_notices(
        "num.io.threads=9",
        &["server.properties:1: num.io.threads is accepted but has no effect in Gracchus"],
    );
    check_notices(
        "num.partitions=2\nnum.partitions=3",
        &["server.properties:2: num.partitions is given more than once; the last one holds"],
    );
    check_notices("broker.id=4", &["server.properties:1: broker.id is the old name of node.id"]);
    check_notices("super.users=User:a\nrsm.config.x=1\nlistener.name.a.b.c=2", &[]);
    check_notices(
        "listeners=PLAINTEXT://:9092",
        &["server.properties:1: listeners advertises to each client of PLAINTEXT the address by \
           which it came; set advertised.listeners to choose another"],
    );
}

/// What is wrong with a configuration, one problem a line.
#[track_caller]
fn check_problems(text: &str, want: &[&str]) {
    let error = load(text).err().unwrap_or_else(|| panic!("{text:?} is taken"));
    assert_eq!(error.to_string().lines().collect::<Vec<_>>(), want, "{text}");
}

#[test]
fn errors_name_place_key_value_and_what_is_allowed() {
    check_problems(
        "x=1\nnum.partitions=0\nlog.preallocate=maybe",
        &[
            "server.properties:3: log.preallocate=maybe: must be true or false",
            "server.properties:2: num.partitions=0: must be at least 1",
        ],
    );
    check_problems(
        "a=\\u1",
        &["server.properties:1: \\u: must be followed by four hexadecimal digits"],
    );
    let overrides = [("num.partitions".to_owned(), "none".to_owned())];
    let error = Config::load(Some(("f", "num.partitions=3")), &overrides).expect_err("bad");
    assert_eq!(
        error.to_string(),
        "--override: num.partitions=none: must be a whole number from -2147483648 to 2147483647"
    );
}

#[test]
fn overrides_win() {
    let overrides = [("num.partitions".to_owned(), "7".to_owned())];
    let loaded = Config::load(Some(("f", "num.partitions=3")), &overrides).expect("good");
    assert_eq!(loaded.config.int(keys::NUM_PARTITIONS), 7);
    assert_eq!(loaded.config.raw("num.partitions"), Some("7"));
}
