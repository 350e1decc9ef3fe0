//! The table against what is known of Apache Kafka 4.4 and of kafka-protocol 0.18.

use super::*;
use crate::schema::APIS;

#[test]
fn the_table_holds_all_91_apis_in_order() {
    assert_eq!(APIS.len(), 91);
    assert!(APIS.is_sorted_by_key(|api| api.key));
    for key in -1..=100 {
        let known = (0..=94).contains(&key) && !(4..=7).contains(&key);
        assert_eq!(schema::api(key).map(|api| api.key), known.then_some(key));
    }
    assert_eq!(APIS.iter().filter(|api| api.broker_listener).count(), 79);
    assert_eq!(APIS.iter().filter(|api| api.controller_listener).count(), 42);
}

/// `key name first-last flexible`, where the last is what a broker takes by default.
#[track_caller]
fn check(key: i16, name: &str, min: i16, max: i16, flexible_from: i16) {
    let api = schema::api(key).expect("the API is in the table");
    assert_eq!((api.name, api.min, api.max_stable()), (name, min, max));
    assert_eq!(api.flexible_from, flexible_from, "{name}");
}

#[test]
fn ranges_are_those_of_kafka_4_4() {
    check(0, "Produce", 3, 13, 9);
    check(1, "Fetch", 4, 18, 12);
    check(2, "ListOffsets", 1, 11, 6);
    check(3, "Metadata", 0, 13, 9);
    check(17, "SaslHandshake", 0, 1, i16::MAX);
    check(18, "ApiVersions", 0, 5, 3);
    check(22, "InitProducerId", 0, 5, 2);
    check(42, "DeleteGroups", 0, 3, 2);
    check(47, "OffsetDelete", 0, 0, i16::MAX);
    check(94, "UnregisterController", 0, 0, 0);
}

/// Where the types end before Kafka 4.4 does: key, last of the types (-1: none), last of ours.
#[track_caller]
fn check_later(types: fn(i16) -> Option<Versions>, want: &[(i16, i16, i16)]) {
    let mut found = Vec::new();
    for api in APIS {
        let last = types(api.key).map_or(-1, |range| {
            assert_eq!(range.min, api.min, "{}", api.name);
            range.max
        });
        if last != api.max {
            found.push((api.key, last, api.max));
        }
    }
    assert_eq!(found, want);
}

#[test]
fn later_versions_are_the_known_ones() {
    let both = [
        (2, 10, 11),
        (18, 4, 5),
        (27, 1, 2),
        (28, 5, 6),
        (35, 4, 5),
        (42, 2, 3),
        (63, 1, 2),
        (78, 1, 2),
        (79, 1, 2),
        (80, 0, 1),
        (85, 0, 1),
        (87, 0, 1),
        (88, -1, 1),
        (89, -1, 1),
        (90, 0, 1),
        (93, -1, 0),
        (94, -1, 0),
    ];
    check_later(response_types, &both);
    let mut requests = both.to_vec();
    requests.extend([(8, 9, 10), (9, 9, 10), (22, 5, 6)]);
    requests.sort_unstable();
    check_later(request_types, &requests);
}

#[test]
fn layouts_are_compared() {
    let api = schema::api(2).expect("ListOffsets");
    assert!(same_layout(api.request, 10, 11));
    assert!(!same_layout(api.request, 9, 10));
    let api = schema::api(42).expect("DeleteGroups");
    assert!(same_layout(api.request, 2, 3));
    assert!(!same_layout(api.response, 2, 3));
    let api = schema::api(27).expect("WriteTxnMarkers");
    assert!(!same_layout(api.request, 1, 2));
}
