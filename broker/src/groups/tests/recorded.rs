//! What Apache Kafka 4.4 was seen to answer, case by case, where the other tests do not have it
//! already.

use std::sync::Arc;

use kraft::machine::rig::Rig;
use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::script::{START_MS, check, subscription};
use crate::groups::*;

const STABLE: &str = "a join => gen 1 leads a
    a sync a=assigned => assigned";

#[test]
fn sync_errors() {
    for names in ["v=3", "v=5 type=consumer proto=range"] {
        check(&format!(
            "{STABLE}
             a sync {names} => assigned
             a sync gen=0 {names} => 22
             a sync gen=2 {names} => 22
             a sync id=nobody {names} => 25
             a sync id=- {names} => 25
             in other
             a sync {names} => 25
             in
             a sync {names} => 24"
        ));
    }
    check(&format!(
        "{STABLE}
         a sync v=5 type=x proto=range => 23
         a sync v=5 type=consumer proto=x => 23
         a sync v=5 proto=range => 23
         a sync v=5 type=consumer => 23
         a sync v=5 gen=7 type=consumer => 23     # What is left out is seen first,
         a sync v=5 gen=7 type=x proto=range => 22 # what is wrong after the generation.
         a sync v=4 type=x proto=range => 23
         a sync static=i => 25"
    ));
}

#[test]
fn heartbeat_errors() {
    check(&format!(
        "{STABLE}
         a beat => 0
         a beat gen=0 => 22
         a beat gen=2 => 22
         a beat id=nobody => 25
         a beat id=- => 25
         in other
         a beat => 25
         in
         a beat => 24
         in g
         a beat static=i => 25"
    ));
}

#[test]
fn leaving() {
    // Before v3: a list of one, whose error is the answer's.
    check(&format!(
        "{STABLE}
         in other
         x leave id=x => 25
         in
         x leave id=x => 24
         in g
         x leave id=x => 25
         x leave id=- => 25
         a leave => 0
         a leave => 25
         describe => Empty consumer/"
    ));
    check(&format!(
        "{STABLE}
         s join v=5 static=static => waits
         a beat => 27
         a join => gen 2 leads a,s
         s gets gen 2 follows a
         x leave id=x static=static => 82
         x leave id=- static=nobody => 25
         a leave also=unknown,@static => 0 25 0
         a leave also=a => 25 25
         describe => Empty consumer/"
    ));
}

#[test]
fn commits_to_many_partitions() {
    let puts: Vec<String> = (0..50).map(|at| format!("t-{at}={}/m{at}", at * 10)).collect();
    let puts = puts.join(" ");
    let zeros = vec!["0"; 50].join(" ");
    check(&format!("admin put {puts} => {zeros}\n offsets => {puts}"));
}

/// One machine, asked without the script's names.
fn machine() -> Rig<GroupMachine> {
    let settings = GroupSettings { initial_rebalance_delay_ms: 0, ..GroupSettings::default() };
    Rig::with_soft(START_MS, Vec::new(), Soft::new(Arc::new(settings)))
}

fn join(client_id: &str, instance_id: Option<&str>) -> JoinRequest {
    JoinRequest {
        group: Name::from("g"),
        member_id: Name::from(""),
        instance_id: instance_id.map(Name::from),
        client_id: Name::from(client_id),
        client_host: Name::from("/127.0.0.1"),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: Name::from("consumer"),
        protocols: vec![Protocol { name: Name::from("range"), metadata: subscription("") }],
        requires_member_id: true,
        can_skip_assignment: true,
        reason: None,
        fresh_uuid: Uuid::from_u128(9),
    }
}

#[test]
fn member_ids_begin_with_the_client_or_instance_id() {
    let tail = "-00000000-0000-0000-0000-000000000009";
    for client_id in ["abc", "", "with space"] {
        let Reply::Join(reply) = machine().ask(1, Input::Join(join(client_id, None))) else {
            panic!("another kind of answer")
        };
        assert_eq!(*reply.member_id, format!("{client_id}{tail}"));
        let id = reply.member_id.clone();
        assert_eq!(reply, JoinReply::refused(ErrorCode::MemberIdRequired, id));
    }
    let mut rig = machine();
    rig.send(1, Input::Join(join("abc", Some("inst"))));
    rig.advance(0);
    let Some(Reply::Join(reply)) = rig.take_reply(1) else { panic!("no answer") };
    assert_eq!(*reply.member_id, format!("inst{tail}"));
}

#[test]
fn the_record_of_a_group_is_kafkas() {
    let mut rig = machine();
    rig.send(1, Input::Join(join("c", Some("i"))));
    rig.advance(5);
    let Some(Reply::Join(reply)) = rig.take_reply(1) else { panic!("no answer") };
    let part = bytes::Bytes::from_static(b"A");
    let sync = SyncRequest {
        group: Name::from("g"),
        generation: 1,
        member_id: reply.member_id.clone(),
        instance_id: None,
        protocol_type: None,
        protocol: None,
        requires_protocol: false,
        assignments: vec![(reply.member_id.clone(), part.clone())],
    };
    rig.ask(2, Input::Sync(sync));
    let member = MemberValue {
        member_id: reply.member_id.clone(),
        instance_id: Some(Name::from("i")),
        client_id: Name::from("c"),
        client_host: Name::from("/127.0.0.1"),
        rebalance_timeout_ms: 10_000,
        session_timeout_ms: 10_000,
        subscription: subscription(""),
        assignment: part,
    };
    let value = |value| Record::Group { group: Name::from("g"), value: Some(value) };
    let created = GroupValue { state_since_ms: Some(START_MS), ..GroupValue::default() };
    let assigned = GroupValue {
        protocol_type: Some(Name::from("consumer")),
        generation: 1,
        protocol: Some(Name::from("range")),
        leader: Some(reply.member_id.clone()),
        state_since_ms: Some(START_MS),
        members: vec![member],
    };
    assert_eq!(rig.log, [value(created), value(assigned.clone())]);
    rig.advance(10_000);
    let emptied = GroupValue {
        generation: 2,
        protocol: None,
        leader: None,
        state_since_ms: Some(START_MS + 10_005),
        members: Vec::new(),
        ..assigned
    };
    assert_eq!(rig.log.last(), Some(&value(emptied)));
}
