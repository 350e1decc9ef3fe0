//! One classic group while it lives: its members, who waits for what, and the rules that need only
//! the group itself (leader, votes, fences). When things happen is `rebalance.rs` and the request
//! files.
//!
//! Kafka's `ClassicGroup`. A group without members and without pending ids needs no [`Group`]: the
//! log says all there is to say about it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use kraft::machine::Token;
use protocol_compat::error::ErrorCode;

use crate::groups::hard::{GroupValue, MemberValue, Stored};
use crate::groups::messages::{GroupState, JoinRequest, JoinedMember, Name, Protocol};

/// The protocol type whose metadata the coordinator can read.
pub const CONSUMER: &str = "consumer";

/// Where a group is in its round of join, sync and work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No members; ids may be pending.
    Empty,
    /// Members are called to join again. Never with parked syncs.
    Preparing(Gathering),
    /// All have the new generation; the leader's assignment is awaited.
    Completing,
    /// Everybody can have an assignment.
    Stable,
}

/// What ends a join phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gathering {
    /// The first one of an empty group: only time, so that a fleet that starts up joins in one
    /// round.
    Initial {
        /// The delay that runs now.
        delay_ms: i32,
        /// What may still be added to it.
        remaining_ms: i32,
        /// Somebody joined while it ran.
        grew: bool,
    },
    /// Everybody is back, or the time is over.
    Rejoin,
}

/// One member. Cheap to clone: names and bytes are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub instance_id: Option<Name>,
    pub client_id: Name,
    pub client_host: Name,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    /// In order of preference, no name twice, never empty.
    pub protocols: Vec<Protocol>,
    pub assignment: Bytes,
    /// Its first join has not been answered, so it cannot send heartbeats yet.
    pub is_new: bool,
    join: Option<Token>,
    sync: Option<Token>,
}

impl Member {
    /// A member as it asks to join, nothing parked yet.
    pub fn joining(request: &JoinRequest) -> Self {
        Member {
            instance_id: request.instance_id.clone(),
            client_id: request.client_id.clone(),
            client_host: request.client_host.clone(),
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            session_timeout_ms: request.session_timeout_ms,
            protocols: distinct(&request.protocols),
            assignment: Bytes::new(),
            is_new: true,
            join: None,
            sync: None,
        }
    }

    fn stored(value: &MemberValue, protocol: &Name) -> Self {
        let rebalance_timeout_ms = match value.rebalance_timeout_ms {
            -1 => value.session_timeout_ms,
            timeout_ms => timeout_ms,
        };
        Member {
            instance_id: value.instance_id.clone(),
            client_id: value.client_id.clone(),
            client_host: value.client_host.clone(),
            rebalance_timeout_ms,
            session_timeout_ms: value.session_timeout_ms,
            protocols: vec![Protocol {
                name: protocol.clone(),
                metadata: value.subscription.clone(),
            }],
            assignment: value.assignment.clone(),
            is_new: false,
            join: None,
            sync: None,
        }
    }

    /// Whether its JoinGroup waits for an answer.
    pub fn awaits_join(&self) -> bool {
        self.join.is_some()
    }

    /// Whether a heartbeat is not to be expected of it: a client that waits for an answer sends
    /// none.
    pub fn may_be_silent(&self) -> bool {
        !self.is_new && (self.join.is_some() || self.sync.is_some())
    }

    /// Whether it would join with exactly what it joined with before.
    pub fn same_protocols(&self, protocols: &[Protocol]) -> bool {
        self.protocols == distinct(protocols)
    }

    /// What it says about itself under `protocol`.
    pub fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|offered| &*offered.name == protocol);
        found.map_or_else(Bytes::new, |offered| offered.metadata.clone())
    }
}

/// Keeps the first of each name, and copies the bytes so that no request buffer is held.
fn distinct(protocols: &[Protocol]) -> Vec<Protocol> {
    let mut seen = BTreeSet::new();
    let first = protocols.iter().filter(|protocol| seen.insert(protocol.name.clone()));
    let copy = |protocol: &Protocol| Protocol {
        name: protocol.name.clone(),
        metadata: Bytes::copy_from_slice(&protocol.metadata),
    };
    first.map(copy).collect()
}

/// A parked request, by what it asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    Join(Token),
    Sync(Token),
}

impl Parked {
    /// Who waits.
    pub fn token(self) -> Token {
        match self {
            Parked::Join(token) | Parked::Sync(token) => token,
        }
    }
}

/// One group with members or pending ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub id: Name,
    pub state: State,
    /// When `state` was entered; unknown after loading an old record.
    pub state_since_ms: Option<i64>,
    pub generation: i32,
    /// Of the first member since the group was last empty.
    pub protocol_type: Option<Name>,
    /// What the generation agreed on.
    pub protocol: Option<Name>,
    pub leader: Option<Name>,
    /// What the members of this generation subscribe to, where the coordinator can tell.
    pub subscribed: Option<BTreeSet<Name>>,
    /// Ids handed out with MEMBER_ID_REQUIRED that did not come back yet.
    pub pending_joins: BTreeSet<Name>,
    /// Members that have the generation and did not sync yet.
    pub pending_syncs: BTreeSet<Name>,
    members: BTreeMap<Name, Member>,
    /// Static members: instance id to member id.
    instances: BTreeMap<Name, Name>,
    /// How many members offer each protocol; no zeros.
    offers: BTreeMap<Name, usize>,
    /// How many members have a join parked.
    awaiting_joins: usize,
}

impl Group {
    /// The group as its last record left it: Stable with members, Empty without.
    pub fn stored(id: &Name, stored: Option<&Stored>) -> Self {
        let default = GroupValue::default();
        let value = stored.and_then(|stored| stored.value.as_ref()).unwrap_or(&default);
        let mut group = Group {
            id: id.clone(),
            state: if value.members.is_empty() { State::Empty } else { State::Stable },
            state_since_ms: value.state_since_ms,
            generation: value.generation,
            protocol_type: value.protocol_type.clone(),
            protocol: value.protocol.clone(),
            leader: None,
            subscribed: None,
            pending_joins: BTreeSet::new(),
            pending_syncs: BTreeSet::new(),
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            offers: BTreeMap::new(),
            awaiting_joins: 0,
        };
        let unnamed = Name::from("");
        let protocol = value.protocol.as_ref().unwrap_or(&unnamed);
        for member in &value.members {
            group.insert(member.member_id.clone(), Member::stored(member, protocol));
        }
        // A record names a leader that is a member; a damaged one must not leave the group
        // headless.
        if let Some(leader) =
            value.leader.as_ref().filter(|leader| group.members.contains_key(*leader))
        {
            group.leader = Some(leader.clone());
        }
        group.subscribed = super::subscription::of_group(&group);
        group
    }

    /// The group as it is to be stored, with the assignments the members have.
    pub fn value(&self) -> GroupValue {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let member = |(member_id, member): (&Name, &Member)| MemberValue {
            member_id: member_id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
            subscription: member.metadata(protocol),
            assignment: member.assignment.clone(),
        };
        GroupValue {
            protocol_type: self.protocol_type.clone(),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            state_since_ms: self.state_since_ms,
            members: self.members.iter().map(member).collect(),
        }
    }

    /// The state by Kafka's name.
    pub fn state_name(&self) -> GroupState {
        match self.state {
            State::Empty => GroupState::Empty,
            State::Preparing(_) => GroupState::PreparingRebalance,
            State::Completing => GroupState::CompletingRebalance,
            State::Stable => GroupState::Stable,
        }
    }

    /// Moves to `state`.
    pub fn enter(&mut self, state: State, now_ms: i64) {
        self.state = state;
        self.state_since_ms = Some(now_ms);
    }

    /// Whether the log alone can represent it.
    pub fn is_idle(&self) -> bool {
        self.state == State::Empty && self.pending_joins.is_empty()
    }

    /// Whether it is a consumer group in the sense of the embedded consumer protocol.
    pub fn is_consumer(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// Whether members need offsets of this topic. Where the coordinator cannot tell, those of a
    /// consumer group need all.
    pub fn is_subscribed(&self, topic: &str) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.is_consumer(),
        }
    }

    /// One member.
    pub fn member(&self, member_id: &str) -> Option<&Member> {
        self.members.get(member_id)
    }

    /// All members, by id.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (&Name, &Member)> {
        self.members.iter()
    }

    /// The members' ids.
    pub fn member_ids(&self) -> Vec<Name> {
        self.members.keys().cloned().collect()
    }

    /// How many members have a join parked.
    pub fn awaiting_joins(&self) -> usize {
        self.awaiting_joins
    }

    /// The member id behind an instance id.
    pub fn static_member(&self, instance_id: &str) -> Option<&Name> {
        self.instances.get(instance_id)
    }

    /// Whether `member_id` leads.
    pub fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    /// The longest rebalance timeout of the members; 0 without members.
    pub fn rebalance_timeout_ms(&self) -> i32 {
        self.members.values().map(|member| member.rebalance_timeout_ms).max().unwrap_or(0).max(0)
    }

    /// Whether all members have a join parked and no id is pending.
    pub fn all_joined(&self) -> bool {
        self.awaiting_joins == self.members.len() && self.pending_joins.is_empty()
    }

    /// Whether a request speaks for the member it names.
    ///
    /// Errors: UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID when the instance id belongs to another
    /// member.
    pub fn check_member(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
    ) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.static_member(instance_id) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(owner) if &**owner != member_id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        match self.members.contains_key(member_id) {
            true => Ok(()),
            false => Err(ErrorCode::UnknownMemberId),
        }
    }

    /// Whether one who offers this could join: anything in an empty group, else the group's type
    /// and at least one protocol that everybody offers.
    pub fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.state == State::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        let by_all =
            |protocol: &Protocol| self.offers.get(&protocol.name) == Some(&self.members.len());
        self.protocol_type.as_deref() == Some(protocol_type) && protocols.iter().any(by_all)
    }

    /// The protocol with the most votes among those that everybody offers; each member votes for
    /// the first of its own. Of equals the first by name. `None` without members.
    pub fn elect_protocol(&self) -> Option<Name> {
        let mut votes: BTreeMap<&Name, usize> = BTreeMap::new();
        for member in self.members.values() {
            let by_all =
                |protocol: &&Protocol| self.offers.get(&protocol.name) == Some(&self.members.len());
            if let Some(choice) = member.protocols.iter().find(by_all) {
                *votes.entry(&choice.name).or_default() += 1;
            }
        }
        // max_by_key takes the last of equals, so the names run backwards.
        let (name, _) = votes.into_iter().rev().max_by_key(|(_, count)| *count)?;
        Some(name.clone())
    }

    /// What the leader is told of everybody.
    pub fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let joined = |(member_id, member): (&Name, &Member)| JoinedMember {
            member_id: member_id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.metadata(protocol),
        };
        self.members.iter().map(joined).collect()
    }

    /// Adds a member. The first one leads and gives the group its protocol type.
    pub fn add(&mut self, member_id: Name, member: Member, protocol_type: &Name) {
        assert!(!self.members.contains_key(&member_id), "{member_id} joins {} twice", self.id);
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type.clone());
        }
        self.pending_joins.remove(&member_id);
        self.insert(member_id, member);
    }

    fn insert(&mut self, member_id: Name, member: Member) {
        if let Some(instance_id) = &member.instance_id {
            self.instances.insert(instance_id.clone(), member_id.clone());
        }
        if self.leader.is_none() {
            self.leader = Some(member_id.clone());
        }
        self.count(&member.protocols, 1);
        self.awaiting_joins += usize::from(member.awaits_join());
        if let Some(twin) = self.members.insert(member_id, member) {
            // Only a damaged record lists a member twice; the later entry counts.
            self.count(&twin.protocols, -1);
        }
    }

    /// Removes a member, a pending id, or nothing. A leader is succeeded by the first by id. What
    /// the member had parked is returned to be answered.
    pub fn remove(&mut self, member_id: &str) -> Vec<Parked> {
        self.pending_joins.remove(member_id);
        self.pending_syncs.remove(member_id);
        let Some(mut member) = self.members.remove(member_id) else { return Vec::new() };
        self.count(&member.protocols, -1);
        if let Some(instance_id) = &member.instance_id {
            self.instances.remove(instance_id);
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
        let join = member.join.take().map(Parked::Join);
        self.awaiting_joins -= usize::from(join.is_some());
        join.into_iter().chain(member.sync.take().map(Parked::Sync)).collect()
    }

    /// Gives the place of a static member to a new id: same assignment, same leadership. What the
    /// old id had parked is returned to be answered.
    pub fn replace(&mut self, old_id: &str, new_id: Name) -> Vec<Parked> {
        let Some(mut member) = self.members.remove(old_id) else { return Vec::new() };
        let join = member.join.take().map(Parked::Join);
        self.awaiting_joins -= usize::from(join.is_some());
        let sync = member.sync.take().map(Parked::Sync);
        member.is_new = false;
        if let Some(instance_id) = &member.instance_id {
            self.instances.insert(instance_id.clone(), new_id.clone());
        }
        if self.is_leader(old_id) {
            self.leader = Some(new_id.clone());
        }
        if self.pending_syncs.remove(old_id) {
            self.pending_syncs.insert(new_id.clone());
        }
        self.members.insert(new_id, member);
        join.into_iter().chain(sync).collect()
    }

    /// A member joins again with what it asks for now.
    pub fn update(&mut self, member_id: &str, request: &JoinRequest) {
        let protocols = distinct(&request.protocols);
        self.count(&protocols, 1);
        let Some(member) = self.members.get_mut(member_id) else { return };
        let old = std::mem::replace(&mut member.protocols, protocols);
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        member.session_timeout_ms = request.session_timeout_ms;
        self.count(&old, -1);
    }

    fn count(&mut self, protocols: &[Protocol], by: isize) {
        for protocol in protocols {
            let count = self.offers.entry(protocol.name.clone()).or_default();
            *count = count.checked_add_signed(by).expect("an offer is taken back once");
            if *count == 0 {
                self.offers.remove(&protocol.name);
            }
        }
    }

    /// Parks a join; an earlier one of the same member is returned to be answered.
    pub fn park_join(&mut self, member_id: &str, token: Token) -> Option<Token> {
        let member = self.members.get_mut(member_id)?;
        let earlier = member.join.replace(token);
        self.awaiting_joins += usize::from(earlier.is_none());
        earlier
    }

    /// Takes a parked join; the member is no longer new.
    pub fn take_join(&mut self, member_id: &str) -> Option<Token> {
        let member = self.members.get_mut(member_id)?;
        member.is_new = false;
        let token = member.join.take();
        self.awaiting_joins -= usize::from(token.is_some());
        token
    }

    /// Parks a sync; an earlier one of the same member is returned to be answered.
    pub fn park_sync(&mut self, member_id: &str, token: Token) -> Option<Token> {
        self.members.get_mut(member_id)?.sync.replace(token)
    }

    /// Takes a parked sync.
    pub fn take_sync(&mut self, member_id: &str) -> Option<Token> {
        self.members.get_mut(member_id)?.sync.take()
    }

    /// Sets what each member has to do.
    pub fn assign(&mut self, assignment: impl Fn(&str) -> Bytes) {
        for (member_id, member) in &mut self.members {
            member.assignment = assignment(member_id);
        }
    }

    /// The leader if it joined again, else the first by id that did. False if nobody did.
    pub fn elect_leader(&mut self) -> bool {
        let leader = self.leader.as_deref().and_then(|leader| self.members.get(leader));
        if leader.is_some_and(Member::awaits_join) {
            return true;
        }
        let joined = self.members.iter().find(|(_, member)| member.awaits_join());
        match joined {
            Some((member_id, _)) => {
                self.leader = Some(member_id.clone());
                true
            }
            None => false,
        }
    }

    /// Everything parked.
    pub fn parked(&self) -> impl Iterator<Item = Parked> {
        self.members.values().flat_map(|member| {
            member.join.map(Parked::Join).into_iter().chain(member.sync.map(Parked::Sync))
        })
    }

    /// Panics where the group contradicts itself. For tests, after every step.
    pub fn check(&self) {
        let awaiting = self.members.values().filter(|member| member.awaits_join()).count();
        assert_eq!(self.awaiting_joins, awaiting, "parked joins miscounted");
        let mut offers: BTreeMap<Name, usize> = BTreeMap::new();
        for protocol in self.members.values().flat_map(|member| &member.protocols) {
            *offers.entry(protocol.name.clone()).or_default() += 1;
        }
        assert_eq!(self.offers, offers, "offers miscounted");
        let instances =
            |(id, member): (&Name, &Member)| Some((member.instance_id.clone()?, id.clone()));
        let instances: BTreeMap<Name, Name> = self.members.iter().filter_map(instances).collect();
        assert_eq!(self.instances, instances, "static members mistaken");
        assert_eq!(
            self.leader.is_some(),
            !self.members.is_empty(),
            "a leader if and only if members"
        );
        assert!(
            self.leader.iter().all(|leader| self.members.contains_key(leader)),
            "foreign leader"
        );
        assert!(self.pending_syncs.iter().all(|id| self.members.contains_key(id)), "foreign sync");
        assert!(self.pending_joins.iter().all(|id| !self.members.contains_key(id)), "joined twice");
        let syncs = self.members.values().filter(|member| member.sync.is_some()).count();
        match &self.state {
            State::Empty => assert!(self.members.is_empty(), "an empty group has members"),
            State::Preparing(_) => assert_eq!((syncs, self.pending_syncs.len()), (0, 0)),
            State::Completing => assert_eq!(awaiting, 0, "a join waits in a finished join phase"),
            State::Stable => {
                assert_eq!((syncs, awaiting), (0, 0), "somebody waits in a stable group")
            }
        }
    }
}
