//! A small vocabulary for tests of the coordinator: each line does one thing and says what comes of
//! it.
//!
//! ```text
//! a join proto=range,rr => waits        # an actor acts; options are key=value
//! +3000                                 # the clock moves on
//! a gets gen 1 leads a                  # the answer to something parked
//! a sync a=A => A
//! state => Stable
//! ```
//!
//! Every answer has to be expected: a line may not begin while one is left over. After each line
//! the replay of the log and the soft state are checked. Errors show as numbers, member ids as
//! actors.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kraft::machine::rig::Rig;
use kraft::machine::{Refused, Token};
use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use crate::groups::*;

/// Far enough from zero that nothing depends on it.
pub const START_MS: i64 = 1_000_000;

/// Runs a script with the delay of the first rebalance off.
#[track_caller]
pub fn check(script: &str) {
    let settings = GroupSettings { initial_rebalance_delay_ms: 0, ..GroupSettings::default() };
    Script::new(settings).run(script);
}

/// Runs a script with these settings.
#[track_caller]
pub fn check_with(settings: GroupSettings, script: &str) {
    Script::new(settings).run(script);
}

struct Actor {
    member_id: Name,
    generation: i32,
    instance_id: Option<Name>,
    protocol_type: Name,
    protocols: Vec<(String, String)>,
    session_timeout_ms: i32,
    rebalance_timeout_ms: i32,
    version: i16,
}

pub struct Script {
    pub rig: Rig<GroupMachine>,
    settings: Arc<GroupSettings>,
    group: Name,
    actors: BTreeMap<String, Actor>,
    /// Whose request a token is.
    asked: BTreeMap<u64, String>,
    next: u64,
}

/// The key=value part of a line.
struct Options<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Options<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(&self, key: &str) -> Option<T> {
        self.get(key).map(|value| value.parse().expect(key))
    }
}

impl Script {
    pub fn new(settings: GroupSettings) -> Self {
        let settings = Arc::new(settings);
        let rig = Rig::with_soft(START_MS, Vec::new(), Soft::new(settings.clone()));
        Script {
            rig,
            settings,
            group: Name::from("g"),
            actors: BTreeMap::new(),
            asked: BTreeMap::new(),
            next: 0,
        }
    }

    #[track_caller]
    pub fn run(&mut self, script: &str) -> &mut Self {
        for (number, line) in script.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (action, want) = match line.split_once("=>") {
                Some((action, want)) => (action.trim(), Some(want.trim())),
                None => (line, None),
            };
            let words: Vec<&str> = action.split_whitespace().collect();
            let got = self.act(&words);
            let want = want.map(str::to_owned).or_else(|| expected(&words));
            assert_eq!(
                got.clone().unwrap_or_default(),
                want.unwrap_or_default(),
                "line {}: {line}",
                number + 1
            );
            self.rig.check_replay();
            self.rig.shard.soft().check(self.rig.shard.hard());
        }
        assert!(self.rig.replies.is_empty(), "not expected: {:?}", self.rig.replies);
        self
    }

    fn act(&mut self, words: &[&str]) -> Option<String> {
        let options = words.iter().filter_map(|word| word.split_once('=')).collect();
        let options = Options(options);
        if words.get(1) != Some(&"gets") {
            assert!(self.rig.replies.is_empty(), "not expected: {:?}", self.rig.replies);
        }
        match words {
            ["in", group] => self.group = Name::from(*group),
            ["in"] => self.group = Name::from(""),
            ["fail", "off"] => self.rig.refuse = None,
            ["fail", why] => self.rig.refuse = Some(refusal(why)),
            ["failover"] => {
                self.rig.fail_over(Soft::new(self.settings.clone()));
            }
            ["hold"] => self.rig.commit_at_once = false,
            ["commit"] => {
                self.rig.commit_at_once = true;
                self.rig.commit();
            }
            [delay] if delay.starts_with('+') => {
                self.rig.advance(delay[1..].parse().expect("a delay"));
            }
            ["state"] => return Some(self.state().name().to_owned()),
            ["deadline", actor] => return Some(self.session_left(actor)),
            ["records"] => return Some(self.rig.log.len().to_string()),
            ["describe"] => return Some(self.describe()),
            ["list", ..] => return Some(self.list(&options)),
            ["offsets", ..] => return Some(self.offsets(&options)),
            ["delete"] => {
                let group = self.group.clone();
                return Some(self.ask("", Input::DeleteGroup(group)));
            }
            ["unsubscribe", ..] => return Some(self.delete_offsets(&options)),
            ["dropped", topics @ ..] => return Some(self.topics_deleted(topics)),
            ["expire"] => {
                let reply = self.ask("", Input::Expire);
                self.rig.advance(0);
                return Some(reply);
            }
            [actor, "gets", ..] => return Some(self.take(actor)),
            [actor, "join", ..] => return Some(self.join(actor, &options)),
            [actor, "sync", ..] => return Some(self.sync(actor, &options)),
            [actor, "beat", ..] => return Some(self.beat(actor, &options)),
            [actor, "leave", ..] => return Some(self.leave(actor, &options)),
            [actor, "put", ..] => return Some(self.put(actor, &options)),
            _ => panic!("no such line: {words:?}"),
        }
        None
    }

    /// Sends, and shows the answer or `waits`.
    fn ask(&mut self, actor: &str, input: Input) -> String {
        if let Err(error) = input.check(&self.settings) {
            let reply = input.refusal(error);
            return self.show(actor, reply);
        }
        self.next += 1;
        let token = self.next;
        self.asked.insert(token, actor.to_owned());
        self.rig.send(token, input);
        // The shell fires what is due at once.
        if self.rig.shard.next_deadline().is_some_and(|at_ms| at_ms <= self.rig.now_ms) {
            self.rig.advance(0);
        }
        match self.rig.take_reply(token) {
            Some(reply) => self.show(actor, reply),
            None => "waits".to_owned(),
        }
    }

    fn take(&mut self, actor: &str) -> String {
        let asked = &self.asked;
        let is_theirs = |(token, _): &(Token, Reply)| asked[&token.0] == actor;
        match self.rig.replies.iter().position(is_theirs) {
            Some(at) => {
                let (_, reply) = self.rig.replies.remove(at);
                self.show(actor, reply)
            }
            None => "nothing".to_owned(),
        }
    }

    fn join(&mut self, name: &str, options: &Options) -> String {
        let actor = self.actors.entry(name.to_owned()).or_insert_with(|| Actor {
            member_id: Name::from(""),
            generation: -1,
            instance_id: None,
            protocol_type: Name::from("consumer"),
            protocols: vec![("range".to_owned(), String::new())],
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 10_000,
            version: 3,
        });
        if let Some(instance) = options.get("static") {
            actor.instance_id = (instance != "-").then(|| Name::from(instance));
        }
        if let Some(protocol_type) = options.get("type") {
            actor.protocol_type = Name::from(protocol_type);
        }
        if let Some(protocols) = options.get("proto") {
            let named = protocols.split(',').filter(|protocol| !protocol.is_empty());
            let split = |protocol: &str| {
                let (name, topics) = protocol.split_once(':').unwrap_or((protocol, ""));
                (name.to_owned(), topics.to_owned())
            };
            actor.protocols = named.map(split).collect();
        }
        actor.session_timeout_ms = options.number("session").unwrap_or(actor.session_timeout_ms);
        actor.rebalance_timeout_ms =
            options.number("rebalance").unwrap_or(actor.rebalance_timeout_ms);
        actor.version = options.number("v").unwrap_or(actor.version);
        let protocols = actor.protocols.iter().map(|(name, topics)| Protocol {
            name: Name::from(name.as_str()),
            metadata: subscription(topics),
        });
        let mut request = JoinRequest {
            group: self.group.clone(),
            member_id: actor.member_id.clone(),
            instance_id: actor.instance_id.clone(),
            client_id: Name::from(name),
            client_host: Name::from("/127.0.0.1"),
            session_timeout_ms: actor.session_timeout_ms,
            rebalance_timeout_ms: actor.rebalance_timeout_ms,
            protocol_type: actor.protocol_type.clone(),
            protocols: protocols.collect(),
            requires_member_id: actor.version >= 4,
            can_skip_assignment: actor.version >= 9,
            reason: None,
            fresh_uuid: Uuid::from_u128(u128::from(self.next) + 1),
        };
        if let Some(id) = options.get("id") {
            request.member_id = self.id_of(id);
        }
        self.ask(name, Input::Join(request))
    }

    /// The member id of an actor; of `-` the empty one; of anything else the word itself.
    fn id_of(&self, word: &str) -> Name {
        match self.actors.get(word) {
            Some(actor) => actor.member_id.clone(),
            None if word == "-" => Name::from(""),
            None => Name::from(word),
        }
    }

    /// Member, instance and generation of a request.
    fn who(&self, name: &str, options: &Options) -> (Name, Option<Name>, i32) {
        let actor = self.actors.get(name);
        let member_id = match options.get("id") {
            Some(id) => self.id_of(id),
            None => self.id_of(name),
        };
        let instance_id = match options.get("static") {
            Some("-") => None,
            Some(instance) => Some(Name::from(instance)),
            None => actor.and_then(|actor| actor.instance_id.clone()),
        };
        let generation = options.number("gen");
        (member_id, instance_id, generation.or(actor.map(|actor| actor.generation)).unwrap_or(-1))
    }

    fn sync(&mut self, name: &str, options: &Options) -> String {
        let (member_id, instance_id, generation) = self.who(name, options);
        let known = ["id", "static", "gen", "type", "proto", "v"];
        let parts = options.0.iter().filter(|(key, _)| !known.contains(key));
        let parts = parts.map(|(key, part)| (self.id_of(key), Bytes::from((*part).to_owned())));
        let named = |key| options.get(key).filter(|name| *name != "-").map(Name::from);
        let request = SyncRequest {
            group: self.group.clone(),
            generation,
            member_id,
            instance_id,
            protocol_type: named("type"),
            protocol: named("proto"),
            requires_protocol: options.number::<i16>("v").unwrap_or(3) >= 5,
            assignments: parts.collect(),
        };
        self.ask(name, Input::Sync(request))
    }

    fn beat(&mut self, name: &str, options: &Options) -> String {
        let (member_id, instance_id, generation) = self.who(name, options);
        let group = self.group.clone();
        let request = HeartbeatRequest { group, generation, member_id, instance_id };
        self.ask(name, Input::Heartbeat(request))
    }

    /// `also=x,y` leave in the same request; `x@i` names an instance, `@i` one alone.
    fn leave(&mut self, name: &str, options: &Options) -> String {
        let (member_id, instance_id, _) = self.who(name, options);
        let mut members = vec![Leaving { member_id, instance_id, reason: None }];
        let also = options.get("also").unwrap_or_default();
        for other in also.split(',').filter(|other| !other.is_empty()) {
            let (id, instance) = other.split_once('@').unwrap_or((other, ""));
            members.push(Leaving {
                member_id: if id.is_empty() { Name::from("") } else { self.id_of(id) },
                instance_id: (!instance.is_empty()).then(|| Name::from(instance)),
                reason: None,
            });
        }
        self.ask(name, Input::Leave(LeaveRequest { group: self.group.clone(), members }))
    }

    /// Commits `t-0=5`, `t-1=6/note`; other options say who.
    fn put(&mut self, name: &str, options: &Options) -> String {
        let (member_id, instance_id, generation) = self.who(name, options);
        let known = ["id", "static", "gen", "retention", "topicid", "metadata"];
        let topic_id = Uuid::from_u128(options.number("topicid").unwrap_or(0));
        let size = options.number("metadata").unwrap_or(0);
        let commits = options.0.iter().filter(|(key, _)| !known.contains(key));
        let topics = commits.map(|(key, value)| {
            let (topic, partition) = key.rsplit_once('-').expect("topic-partition");
            let (offset, note) = value.split_once('/').unwrap_or((value, ""));
            let metadata = if size > 0 { "\u{e9}".repeat(size) } else { note.to_owned() };
            let partition = CommitPartition {
                partition: partition.parse().expect("a partition"),
                offset: offset.parse().expect("an offset"),
                leader_epoch: -1,
                metadata: (!metadata.is_empty()).then(|| Name::from(metadata)),
            };
            CommitTopic { topic: Name::from(topic), topic_id, partitions: vec![partition] }
        });
        let request = CommitRequest {
            group: self.group.clone(),
            generation,
            member_id,
            instance_id,
            retention_ms: options.number("retention"),
            topics: topics.collect(),
        };
        self.ask(name, Input::Commit(request))
    }

    fn offsets(&mut self, options: &Options) -> String {
        let topic_id = Uuid::from_u128(options.number("topicid").unwrap_or(0));
        let asked = |list: &str| {
            let one = |at: &str| {
                let (topic, partition) = at.rsplit_once('-').expect("topic-partition");
                let partitions = vec![partition.parse().expect("a partition")];
                FetchTopic { topic: Name::from(topic), topic_id, partitions }
            };
            list.split(',').filter(|at| !at.is_empty()).map(one).collect()
        };
        let topics = options.get("of").map(asked);
        let group = self.group.clone();
        self.ask("", Input::FetchOffsets(FetchRequest { group, topics, require_stable: true }))
    }

    fn delete_offsets(&mut self, options: &Options) -> String {
        let topics = options.get("of").unwrap_or_default().split(',').filter(|at| !at.is_empty());
        let topics = topics.map(|at| {
            let (topic, partition) = at.rsplit_once('-').expect("topic-partition");
            (Name::from(topic), vec![partition.parse().expect("a partition")])
        });
        let request = OffsetDeleteRequest { group: self.group.clone(), topics: topics.collect() };
        self.ask("", Input::DeleteOffsets(request))
    }

    fn topics_deleted(&mut self, topics: &[&str]) -> String {
        let deleted = topics.iter().map(|topic| {
            let (topic, id) = topic.split_once('@').unwrap_or((topic, "0"));
            let topic_id = Uuid::from_u128(id.parse().expect("a topic id"));
            DeletedTopic { topic: Name::from(topic), topic_id }
        });
        self.ask("", Input::TopicsDeleted(deleted.collect()))
    }

    fn describe(&mut self) -> String {
        let group = self.group.clone();
        self.ask("", Input::Describe(group))
    }

    fn list(&mut self, options: &Options) -> String {
        let names = |key| {
            let list = options.get(key).unwrap_or_default().split(',');
            list.filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let filter = ListFilter { states: names("states"), types: names("types") };
        self.ask("", Input::List(filter))
    }

    fn state(&self) -> GroupState {
        self.rig.shard.soft().state(self.rig.shard.hard(), &self.group)
    }

    fn session_left(&self, actor: &str) -> String {
        let timer = Timer::Session { group: self.group.clone(), member: self.id_of(actor) };
        match self.rig.shard.deadline(&timer) {
            Some(at_ms) => (at_ms - self.rig.now_ms).to_string(),
            None => "none".to_owned(),
        }
    }

    /// The actor that bears a member id.
    fn bearer(&self, member_id: &str) -> String {
        let bears = |(_, actor): &(&String, &Actor)| &*actor.member_id == member_id;
        match self.actors.iter().find(bears) {
            Some((name, _)) => name.clone(),
            None if member_id.is_empty() => "-".to_owned(),
            None => "?".to_owned(),
        }
    }

    /// Answers not yet taken already say who is who.
    fn learn_ids(&mut self) {
        for (token, reply) in &self.rig.replies {
            if let Reply::Join(reply) = reply
                && reply.error == ErrorCode::None
                && let Some(actor) = self.actors.get_mut(&self.asked[&token.0])
            {
                actor.member_id = reply.member_id.clone();
            }
        }
    }

    fn show(&mut self, actor: &str, reply: Reply) -> String {
        self.learn_ids();
        match reply {
            Reply::Join(reply) => self.show_join(actor, reply),
            Reply::Sync(reply) if reply.error == ErrorCode::None => {
                let text = String::from_utf8_lossy(&reply.assignment);
                if text.is_empty() { "nothing to do".to_owned() } else { text.into_owned() }
            }
            Reply::Sync(SyncReply { error, .. })
            | Reply::Heartbeat(error)
            | Reply::DeleteGroup(error)
            | Reply::TopicsDeleted(error)
            | Reply::Expire(error) => code(error),
            Reply::Leave(reply) if reply.error == ErrorCode::None => codes(&reply.members),
            Reply::Leave(reply) => code(reply.error),
            Reply::Commit(reply) | Reply::DeleteOffsets(reply) => match reply.error {
                ErrorCode::None => codes(&reply.partitions.concat()),
                error => format!("all {}", code(error)),
            },
            Reply::FetchOffsets(reply) => show_offsets(&reply),
            Reply::Describe(reply) => self.show_description(&reply),
            Reply::List(Ok(rows)) => {
                let one = |row: &ListedGroup| {
                    format!("{}/{}/{}", row.group, row.protocol_type, row.state.name())
                };
                rows.iter().map(one).collect::<Vec<_>>().join(" ")
            }
            Reply::List(Err(error)) => code(error),
        }
    }

    fn show_join(&mut self, name: &str, reply: JoinReply) -> String {
        let actor = self.actors.get_mut(name).expect("an actor joined");
        if matches!(reply.error, ErrorCode::None | ErrorCode::MemberIdRequired) {
            actor.member_id = reply.member_id.clone();
        }
        if reply.error != ErrorCode::None {
            return code(reply.error);
        }
        actor.generation = reply.generation;
        let mut text = format!("gen {}", reply.generation);
        if reply.members.is_empty() {
            text += &format!(" follows {}", self.bearer(&reply.leader));
        } else {
            assert_eq!(reply.leader, reply.member_id, "a follower got the list");
            let all = reply.members.iter().map(|member| self.bearer(&member.member_id));
            let mut all: Vec<String> = all.collect();
            all.sort();
            text += &format!(" leads {}", all.join(","));
        }
        text += if reply.skip_assignment { " skips" } else { "" };
        match reply.protocol.as_deref() {
            Some("range") => text,
            other => format!("{text} by {}", other.unwrap_or("nothing")),
        }
    }

    fn show_description(&self, reply: &Description) -> String {
        let mut text = reply.state.name().to_owned();
        if reply.error != ErrorCode::None {
            text += &format!(" {}", code(reply.error));
        }
        text += &format!(" {}/{}", reply.protocol_type, reply.protocol);
        let members = reply.members.iter().map(|member| {
            let assignment = String::from_utf8_lossy(&member.assignment);
            format!(" {}:{}:{assignment}", self.bearer(&member.member_id), member.metadata.len())
        });
        let mut members: Vec<String> = members.collect();
        members.sort();
        text + &members.concat()
    }
}

fn show_offsets(reply: &FetchReply) -> String {
    let rows = reply.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|row| {
            let note = if row.metadata.is_empty() { "" } else { "/" };
            format!("{}-{}={}{note}{}", topic.topic, row.partition, row.offset, row.metadata)
        })
    });
    rows.collect::<Vec<_>>().join(" ")
}

/// `a gets WHAT` expects WHAT.
fn expected(words: &[&str]) -> Option<String> {
    match words {
        [_, "gets", want @ ..] => Some(want.join(" ")),
        _ => None,
    }
}

fn code(error: ErrorCode) -> String {
    error.code().to_string()
}

fn codes(errors: &[ErrorCode]) -> String {
    errors.iter().map(|error| code(*error)).collect::<Vec<_>>().join(" ")
}

fn refusal(word: &str) -> Refused {
    match word {
        "storage" => Refused::Storage,
        "replicas" => Refused::NotEnoughReplicas,
        "large" => Refused::TooLarge,
        _ => panic!("no such refusal: {word}"),
    }
}

/// A consumer subscription of version 1 to topics separated by `+`.
pub fn subscription(topics: &str) -> Bytes {
    let topics: Vec<&str> = topics.split('+').filter(|topic| !topic.is_empty()).collect();
    let mut bytes = vec![0, 1];
    bytes.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        bytes.extend((topic.len() as i16).to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes.extend([0xff; 4]);
    bytes.extend([0; 4]);
    Bytes::from(bytes)
}
