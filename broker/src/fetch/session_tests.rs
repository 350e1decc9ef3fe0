//! Sessions by cases; the rules are KIP-227 and what Kafka 4.4 was seen to answer.

use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::{Ask, EVICTION_MS, Key, Kind, Outcome, Sessions, Want};

fn key(topic: &str, partition: i32) -> Key {
    Key { topic_id: Uuid::nil(), topic: topic.into(), partition }
}

fn want(fetch_offset: i64) -> Want {
    Want { fetch_offset, max_bytes: 100, current_leader_epoch: -1, last_fetched_epoch: -1 }
}

fn ask(session_id: i32, epoch: i32, partitions: &[(&str, i32, i64)]) -> Ask {
    let partitions = partitions.iter().map(|(t, p, offset)| (key(t, *p), want(*offset))).collect();
    Ask { session_id, epoch, by_id: false, sessions: true, partitions, forgotten: Vec::new() }
}

/// A cache with one session that follows `t-0` and `t-1`.
fn with_session() -> (Sessions, i32) {
    let mut sessions = Sessions::new(2);
    let scope = sessions.open(0, ask(0, 0, &[("t", 0, 5), ("t", 1, 6)])).expect("a full fetch");
    assert_eq!(scope.kind, Kind::Full);
    let id = sessions.create(0, false, scope.partitions, || 77);
    (sessions, id)
}

fn offsets(sessions: &mut Sessions, ask: Ask) -> Vec<(i32, i64)> {
    let scope = sessions.open(1, ask).expect("an incremental fetch");
    scope.partitions.iter().map(|(key, want)| (key.partition, want.fetch_offset)).collect()
}

#[test]
fn an_incremental_request_names_what_changed() {
    let (mut sessions, id) = with_session();
    assert_eq!(offsets(&mut sessions, ask(id, 1, &[("t", 1, 9)])), [(0, 5), (1, 9)]);
    let mut forget = ask(id, 2, &[("t", 2, 0)]);
    forget.forgotten = vec![key("t", 0)];
    assert_eq!(offsets(&mut sessions, forget), [(1, 9), (2, 0)]);
}

#[test]
fn errors_leave_the_epoch_as_it_was() {
    let (mut sessions, id) = with_session();
    let errors = [
        (ask(id + 1, 1, &[]), ErrorCode::FetchSessionIdNotFound),
        (ask(0, 1, &[]), ErrorCode::FetchSessionIdNotFound),
        (ask(id, 2, &[]), ErrorCode::InvalidFetchSessionEpoch),
        (Ask { by_id: true, ..ask(id, 1, &[]) }, ErrorCode::FetchSessionTopicIdError),
    ];
    for (ask, code) in errors {
        assert_eq!(sessions.open(1, ask), Err(code));
    }
    assert_eq!(offsets(&mut sessions, ask(id, 1, &[])).len(), 2);
}

#[test]
fn an_emptied_session_ends_and_a_closed_one_is_gone() {
    let (mut sessions, id) = with_session();
    let mut forget = ask(id, 1, &[]);
    forget.forgotten = vec![key("t", 0), key("t", 1)];
    assert_eq!(sessions.open(1, forget).expect("fine").kind, Kind::Sessionless);
    assert!(sessions.is_empty());

    let (mut sessions, id) = with_session();
    let scope = sessions.open(1, ask(id, -1, &[("t", 0, 3)])).expect("a close");
    assert_eq!((scope.kind, scope.partitions.len()), (Kind::Sessionless, 1));
    assert!(sessions.is_empty());
}

#[test]
fn slots_are_bounded_and_the_unused_make_room() {
    let (mut sessions, _) = with_session();
    let mut ids = [78, 79].into_iter();
    assert_eq!(sessions.create(10, false, Vec::new(), || ids.next().expect("an id")), 78);
    assert_eq!(sessions.create(EVICTION_MS, false, Vec::new(), || 79), 0);
    assert_eq!(sessions.create(EVICTION_MS + 1, false, Vec::new(), || 79), 79);
    assert_eq!(sessions.len(), 2);
}

#[test]
fn the_epoch_wraps_to_one() {
    let (mut sessions, id) = with_session();
    sessions.sessions.get_mut(&id).expect("the session").epoch = i32::MAX;
    sessions.open(1, ask(id, i32::MAX, &[])).expect("the last epoch");
    sessions.open(1, ask(id, 1, &[])).expect("the first again");
}

fn outcome(has_records: bool, error: bool, high_watermark: i64) -> Outcome {
    Outcome { error, has_records, diverging: false, high_watermark, log_start_offset: 0 }
}

#[test]
fn an_answer_carries_what_is_new_and_readers_take_turns() {
    let (mut sessions, id) = with_session();
    let zero = key("t", 0);
    assert!(sessions.note(id, &zero, &outcome(false, false, 5)), "never sent before");
    assert!(!sessions.note(id, &zero, &outcome(false, false, 5)), "nothing new");
    assert!(sessions.note(id, &zero, &outcome(false, false, 6)), "the watermark moved");
    assert!(sessions.note(id, &zero, &outcome(false, true, -1)), "an error");
    assert!(sessions.note(id, &zero, &outcome(false, false, 6)), "well again");
    assert!(sessions.note(id, &zero, &outcome(true, false, 6)), "records");
    sessions.move_to_end(id, &zero);
    // Who returned records is read last the next time.
    assert_eq!(offsets(&mut sessions, ask(id, 1, &[])), [(1, 6), (0, 5)]);
}

#[test]
fn what_sessions_take_is_bounded() {
    let (mut sessions, id) = with_session();
    let per_partition = key("t", 0).bytes();
    assert_eq!(sessions.bytes, 2 * per_partition);
    sessions.bytes_max = 3 * per_partition;
    // There is a slot, and no room.
    let two = vec![(key("t", 0), want(0)), (key("t", 1), want(0))];
    assert_eq!(sessions.create(0, false, two.clone(), || 78), 0);
    assert_eq!(sessions.create(0, false, two[..1].to_vec(), || 78), 78);
    // Growing beyond costs the session; what it took is free again.
    let refused = sessions.open(0, ask(id, 1, &[("t", 2, 0)])).err();
    assert_eq!(refused, Some(ErrorCode::FetchSessionIdNotFound));
    assert_eq!(sessions.bytes, per_partition);
    sessions.open(0, ask(78, -1, &[])).expect("closing is always possible");
    assert_eq!(sessions.bytes, 0);
}
