//! Random requests, times, failed writes and failovers. After each step the replay of the log gives
//! the live state and soft state is in order; in the end nobody waits for ever, and silence empties
//! every group.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kraft::machine::rig::Rig;
use kraft::machine::{Refused, Token};
use proptest::prelude::*;
use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::script::{START_MS, subscription};
use crate::groups::*;

/// One thing that happens. Members are picked by number out of those that were ever named.
#[derive(Clone, Debug)]
enum Event {
    Join { group: u8, member: Pick, instance: u8, protocols: u8, old_client: bool, skips: bool },
    Sync { member: Pick, stale: bool },
    Beat { member: Pick },
    Leave { member: Pick },
    Commit { group: u8, member: Pick, topic: u8, retention: bool },
    Fetch { group: u8 },
    DeleteOffsets { group: u8, topic: u8 },
    DeleteGroup { group: u8 },
    Describe { group: u8 },
    TopicDeleted { topic: u8 },
    Time { ms: i64 },
    Refuse { on: bool },
    Hold { on: bool },
    Failover,
}

/// A number to pick a known member with; 0 stands for nobody.
type Pick = u8;

fn event() -> impl Strategy<Value = Event> {
    let join = (0..2u8, any::<u8>(), 0..4u8, 0..4u8, any::<bool>(), any::<bool>());
    let join = join.prop_map(|(group, member, instance, protocols, old_client, skips)| {
        let member = if member < 100 { 0 } else { member };
        Event::Join { group, member, instance, protocols, old_client, skips }
    });
    prop_oneof![
        10 => join,
        8 => (any::<u8>(), prop::bool::weighted(0.1))
            .prop_map(|(member, stale)| Event::Sync { member, stale }),
        6 => any::<u8>().prop_map(|member| Event::Beat { member }),
        3 => any::<u8>().prop_map(|member| Event::Leave { member }),
        4 => (0..2u8, any::<u8>(), 0..3u8, any::<bool>()).prop_map(
            |(group, member, topic, retention)| Event::Commit { group, member, topic, retention }),
        1 => (0..2u8).prop_map(|group| Event::Fetch { group }),
        1 => (0..2u8, 0..3u8).prop_map(|(group, topic)| Event::DeleteOffsets { group, topic }),
        1 => (0..2u8).prop_map(|group| Event::DeleteGroup { group }),
        1 => (0..2u8).prop_map(|group| Event::Describe { group }),
        1 => (0..3u8).prop_map(|topic| Event::TopicDeleted { topic }),
        6 => prop_oneof![Just(0), 1..2_000i64, 2_000..12_000i64, 12_000..700_000i64]
            .prop_map(|ms| Event::Time { ms }),
        2 => prop::bool::weighted(0.4).prop_map(|on| Event::Refuse { on }),
        2 => prop::bool::weighted(0.4).prop_map(|on| Event::Hold { on }),
        1 => Just(Event::Failover),
    ]
}

struct Known {
    group: Name,
    member_id: Name,
    instance_id: Option<Name>,
    generation: i32,
}

struct World {
    rig: Rig<GroupMachine>,
    settings: Arc<GroupSettings>,
    /// Everybody who ever got an id, latest generation known.
    known: Vec<Known>,
    /// Tokens without an answer, with the group and instance of a join.
    open: BTreeMap<u64, (Name, Option<Name>)>,
    next: u64,
}

impl World {
    fn new(delay_ms: i32, max_size: usize) -> Self {
        let settings = Arc::new(GroupSettings {
            initial_rebalance_delay_ms: delay_ms,
            max_size,
            offsets_retention_ms: 300_000,
            ..GroupSettings::default()
        });
        let rig = Rig::with_soft(START_MS, Vec::new(), Soft::new(settings.clone()));
        World { rig, settings, known: Vec::new(), open: BTreeMap::new(), next: 0 }
    }

    fn pick(&self, pick: Pick) -> (Name, Name, Option<Name>, i32) {
        let nobody = || (Name::from("g0"), Name::from(""), None, -1);
        if pick == 0 || self.known.is_empty() {
            return nobody();
        }
        let known = &self.known[usize::from(pick) % self.known.len()];
        let Known { group, member_id, instance_id, generation } = known;
        (group.clone(), member_id.clone(), instance_id.clone(), *generation)
    }

    fn send(&mut self, group: Name, instance_id: Option<Name>, input: Input) {
        if input.check(&self.settings).is_err() {
            return;
        }
        self.next += 1;
        self.open.insert(self.next, (group, instance_id));
        self.rig.send(self.next, input);
    }

    fn act(&mut self, event: Event) {
        match event {
            Event::Join { group, member, instance, protocols, old_client, skips } => {
                let request = self.join(group, member, instance, protocols);
                let request = JoinRequest {
                    requires_member_id: !old_client,
                    can_skip_assignment: skips,
                    fresh_uuid: Uuid::from_u128(u128::from(self.next)),
                    ..request
                };
                let of = (request.group.clone(), request.instance_id.clone());
                self.send(of.0, of.1, Input::Join(request));
            }
            Event::Sync { member, stale } => self.sync(member, stale),
            Event::Beat { member } => {
                let (group, member_id, instance_id, generation) = self.pick(member);
                let of = group.clone();
                let request = HeartbeatRequest { group, generation, member_id, instance_id };
                self.send(of, None, Input::Heartbeat(request));
            }
            Event::Leave { member } => {
                let (group, member_id, instance_id, _) = self.pick(member);
                let members = vec![Leaving { member_id, instance_id, reason: None }];
                self.send(group.clone(), None, Input::Leave(LeaveRequest { group, members }));
            }
            Event::Commit { group, member, topic, retention } => {
                self.commit(group, member, topic, retention);
            }
            Event::Fetch { group: of } => {
                let group = group(of);
                let request =
                    FetchRequest { group: group.clone(), topics: None, require_stable: false };
                self.send(group, None, Input::FetchOffsets(request));
            }
            Event::DeleteOffsets { group: of, topic: at } => {
                let group = group(of);
                let topics = vec![(topic(at), vec![0])];
                let request = OffsetDeleteRequest { group: group.clone(), topics };
                self.send(group, None, Input::DeleteOffsets(request));
            }
            Event::DeleteGroup { group: of } => {
                self.send(group(of), None, Input::DeleteGroup(group(of)));
            }
            Event::Describe { group: of } => {
                self.send(group(of), None, Input::Describe(group(of)));
            }
            Event::TopicDeleted { topic: of } => {
                let deleted = DeletedTopic { topic: topic(of), topic_id: Uuid::nil() };
                self.send(group(0), None, Input::TopicsDeleted(vec![deleted]));
            }
            Event::Time { ms } => self.rig.advance(ms),
            Event::Refuse { on } => self.rig.refuse = on.then_some(Refused::Storage),
            Event::Hold { on } => {
                self.rig.commit_at_once = !on;
                if !on {
                    self.rig.commit();
                }
            }
            Event::Failover => self.rig.fail_over(Soft::new(self.settings.clone())),
        }
    }

    fn join(&self, of: u8, member: Pick, instance: u8, protocols: u8) -> JoinRequest {
        let (known_group, member_id, known_instance, _) = self.pick(member);
        match member_id.is_empty() {
            true => {
                let instance_id = (instance > 0).then(|| Name::from(format!("i{instance}")));
                join(group(of), member_id, instance_id, protocols)
            }
            false => join(known_group, member_id, known_instance, protocols),
        }
    }

    fn sync(&mut self, member: Pick, stale: bool) {
        let (group, member_id, instance_id, generation) = self.pick(member);
        let others = self.known.iter().map(|known| known.member_id.clone());
        let request = SyncRequest {
            group: group.clone(),
            generation: generation - i32::from(stale),
            member_id,
            instance_id,
            protocol_type: None,
            protocol: None,
            requires_protocol: false,
            assignments: others.map(|id| (id, Bytes::from_static(b"part"))).collect(),
        };
        self.send(group, None, Input::Sync(request));
    }

    fn commit(&mut self, of: u8, member: Pick, at: u8, retention: bool) {
        let (known_group, member_id, instance_id, generation) = self.pick(member);
        let group = if member_id.is_empty() { group(of) } else { known_group };
        let partition =
            CommitPartition { partition: 0, offset: 1, leader_epoch: 0, metadata: None };
        let partitions = vec![partition];
        let request = CommitRequest {
            group: group.clone(),
            generation,
            member_id,
            instance_id,
            retention_ms: retention.then_some(5_000),
            topics: vec![CommitTopic { topic: topic(at), topic_id: Uuid::nil(), partitions }],
        };
        self.send(group, None, Input::Commit(request));
    }

    /// Notes who is who, and that nobody is answered twice.
    fn listen(&mut self) {
        for (Token(token), reply) in std::mem::take(&mut self.rig.replies) {
            let (group, instance_id) = self.open.remove(&token).expect("an answer to nobody");
            let Reply::Join(reply) = reply else { continue };
            if !matches!(reply.error, ErrorCode::None | ErrorCode::MemberIdRequired) {
                continue;
            }
            let JoinReply { member_id, generation, .. } = reply;
            match self.known.iter_mut().find(|known| known.member_id == member_id) {
                Some(known) => known.generation = generation,
                None => self.known.push(Known { group, member_id, instance_id, generation }),
            }
        }
    }

    fn check(&self) {
        self.rig.check_replay();
        self.rig.shard.soft().check(self.rig.shard.hard());
    }

    /// Once writes work again everybody is answered without anybody doing anything, and in the end
    /// nobody is a member any more.
    fn calm(&mut self) {
        self.act(Event::Refuse { on: false });
        self.act(Event::Hold { on: false });
        for _ in 0..20 {
            self.act(Event::Time { ms: 100_000 });
            self.listen();
            self.check();
        }
        assert!(self.open.is_empty(), "still waiting: {:?}", self.open);
        let hard = self.rig.shard.hard();
        for (id, _) in hard.groups() {
            let state = self.rig.shard.soft().state(hard, id);
            assert_eq!(state, GroupState::Empty, "{id} has silent members");
        }
    }
}

fn group(number: u8) -> Name {
    Name::from(format!("g{number}"))
}

fn topic(number: u8) -> Name {
    Name::from(format!("t{number}"))
}

fn join(group: Name, member_id: Name, instance_id: Option<Name>, protocols: u8) -> JoinRequest {
    let names: &[&str] = match protocols {
        0 => &["range"],
        1 => &["range", "sticky"],
        2 => &["sticky", "range"],
        _ => &["sticky"],
    };
    let metadata = subscription(if protocols == 1 { "t0+t1" } else { "t0" });
    let protocol = |name: &&str| Protocol { name: Name::from(*name), metadata: metadata.clone() };
    JoinRequest {
        group,
        member_id,
        instance_id,
        client_id: Name::from("c"),
        client_host: Name::from("/h"),
        session_timeout_ms: 6_000 + 4_000 * i32::from(protocols),
        rebalance_timeout_ms: 5_000 * i32::from(protocols),
        protocol_type: Name::from("consumer"),
        protocols: names.iter().map(protocol).collect(),
        requires_member_id: false,
        can_skip_assignment: false,
        reason: None,
        fresh_uuid: Uuid::nil(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_course_of_events(
        delay_ms in prop_oneof![Just(0), Just(3_000)],
        max_size in prop_oneof![Just(2usize), Just(1_000)],
        events in prop::collection::vec(event(), 1..120),
    ) {
        let mut world = World::new(delay_ms, max_size);
        for event in events {
            world.act(event);
            world.listen();
            world.check();
        }
        world.calm();
    }
}
