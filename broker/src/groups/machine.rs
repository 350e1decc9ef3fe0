//! The group coordinator as an event-sourced machine: finds the group, lets `classic/`,
//! `offsets.rs`, `describe.rs` or `sweep.rs` decide, and puts soft state right when an append
//! fails.

use kraft::machine::{Machine, Outbox, Refused, Token};
use protocol_compat::error::ErrorCode;

use super::classic::state::{Group, Parked, State};
use super::classic::{Cx, expire, heartbeat, join, leave, sync};
use super::hard::{GroupValue, Hard, Record};
use super::messages::*;
use super::soft::Soft;
use super::{describe, offsets, sweep};

/// One partition of `__consumer_offsets` at work.
pub struct GroupMachine;

/// What a deadline is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A member, or an id that was handed out, must be heard of.
    Session { group: Name, member: Name },
    /// The join phase ends.
    Join(Name),
    /// The members must have synced.
    Sync(Name),
    /// Expired offsets and groups are looked for.
    Sweep,
    /// Offsets of deleted topics are removed.
    Purge,
}

/// Nothing in the world is left to do: offsets and groups are records and replies.
#[derive(Debug)]
pub enum Effect {}

impl Machine for GroupMachine {
    type Hard = Hard;
    type Soft = Soft;
    type Input = Input;
    type Record = Record;
    type Reply = Reply;
    type Effect = Effect;
    type TimerKey = Timer;

    fn decide(
        hard: &Hard,
        soft: &mut Soft,
        now_ms: i64,
        token: Token,
        input: Input,
        out: &mut Outbox<Self>,
    ) {
        soft.begin();
        match input {
            Input::Join(request) => on_join(hard, soft, now_ms, token, request, out),
            Input::Sync(request) => on_sync(hard, soft, now_ms, token, request, out),
            Input::Heartbeat(request) => on_heartbeat(hard, soft, now_ms, token, request, out),
            Input::Leave(request) => on_leave(hard, soft, now_ms, token, request, out),
            Input::Commit(request) => {
                let reply = offsets::commit(hard, soft, now_ms, request, out);
                out.reply(token, Reply::Commit(reply));
            }
            Input::FetchOffsets(request) => {
                out.reply(token, Reply::FetchOffsets(offsets::fetch(hard, request)));
            }
            Input::DeleteOffsets(request) => {
                let reply = offsets::delete(hard, soft, &request, out);
                out.reply(token, Reply::DeleteOffsets(reply));
            }
            Input::Describe(group) => {
                out.reply(token, Reply::Describe(describe::describe(hard, soft, &group)));
            }
            Input::List(filter) => {
                out.reply(token, Reply::List(Ok(describe::list(hard, soft, &filter))));
            }
            Input::DeleteGroup(group) => {
                let error = describe::delete(hard, soft, &group, out);
                out.reply(token, Reply::DeleteGroup(error));
            }
            Input::TopicsDeleted(topics) => {
                sweep::topics_deleted(soft, now_ms, topics, out);
                out.reply(token, Reply::TopicsDeleted(ErrorCode::None));
            }
            Input::Expire => {
                out.arm(Timer::Sweep, now_ms);
                out.reply(token, Reply::Expire(ErrorCode::None));
            }
        }
    }

    fn apply(hard: &mut Hard, record: &Record) {
        hard.apply(record);
    }

    fn loaded(hard: &Hard, soft: &mut Soft, now_ms: i64, out: &mut Outbox<Self>) {
        soft.load(hard, now_ms, out);
    }

    fn timer(hard: &Hard, soft: &mut Soft, now_ms: i64, key: Timer, out: &mut Outbox<Self>) {
        soft.begin();
        match key {
            Timer::Session { group, member } => {
                with_live(hard, soft, now_ms, &group, out, |live, cx| {
                    expire::session(live, cx, &member);
                });
            }
            Timer::Join(group) => with_live(hard, soft, now_ms, &group, out, expire::join),
            Timer::Sync(group) => with_live(hard, soft, now_ms, &group, out, expire::sync),
            Timer::Sweep => sweep::expired(hard, soft, now_ms, out),
            Timer::Purge => sweep::purge(hard, soft, now_ms, out),
        }
    }

    fn refused(reply: Reply, why: Refused) -> Reply {
        reply.into_refusal(code_of(why))
    }

    /// The group is put back to what it was before the step, with everything that was parked in it
    /// then; whoever got an answer or was parked by the step is told that it failed.
    fn append_failed(
        _hard: &Hard,
        soft: &mut Soft,
        _now_ms: i64,
        why: Refused,
        lost: Outbox<Self>,
        out: &mut Outbox<Self>,
    ) {
        let restored = soft.restore();
        for (token, reply) in lost.replies {
            if !restored.kept.contains(&token) {
                out.reply(token, Self::refused(reply, why));
            }
        }
        for parked in restored.orphans {
            refuse_parked(parked, code_of(why), out);
        }
    }

    fn closing(_hard: &Hard, soft: &mut Soft, why: Refused, out: &mut Outbox<Self>) {
        let parked: Vec<Parked> = soft.groups.values().flat_map(Group::parked).collect();
        parked.into_iter().for_each(|parked| refuse_parked(parked, code_of(why), out));
    }
}

/// The code a client gets for it (Kafka's `CoordinatorOperationExceptionHelper`): one that makes it
/// look for the coordinator again where that helps.
pub fn code_of(why: Refused) -> ErrorCode {
    match why {
        Refused::Loading => ErrorCode::CoordinatorLoadInProgress,
        Refused::NotLeader => ErrorCode::NotCoordinator,
        Refused::Closing => ErrorCode::CoordinatorNotAvailable,
        Refused::NotEnoughReplicas => ErrorCode::CoordinatorNotAvailable,
        Refused::TooLarge => ErrorCode::UnknownServerError,
        Refused::Storage => ErrorCode::NotCoordinator,
    }
}

fn refuse_parked(parked: Parked, error: ErrorCode, out: &mut Outbox<GroupMachine>) {
    let reply = match parked {
        Parked::Join(_) => Reply::Join(JoinReply::refused(error, Name::from(""))),
        Parked::Sync(_) => Reply::Sync(SyncReply::refused(error)),
    };
    out.reply(parked.token(), reply);
}

/// A timer of a group. The group is remembered, as it may become empty by it.
fn with_live(
    hard: &Hard,
    soft: &mut Soft,
    now_ms: i64,
    group: &Name,
    out: &mut Outbox<GroupMachine>,
    run: impl FnOnce(&mut Group, &mut Cx),
) {
    soft.remember(hard, group);
    let settings = soft.settings.clone();
    if let Some(live) = soft.live_mut(hard, group) {
        run(live, &mut Cx { settings: &settings, now_ms, out });
    }
    soft.settle(group);
}

fn on_join(
    hard: &Hard,
    soft: &mut Soft,
    now_ms: i64,
    token: Token,
    request: JoinRequest,
    out: &mut Outbox<GroupMachine>,
) {
    let id = request.group.clone();
    let is_new = !hard.has(&id);
    if is_new && !request.member_id.is_empty() {
        let reply = JoinReply::refused(ErrorCode::UnknownMemberId, request.member_id);
        out.reply(token, Reply::Join(reply));
        return;
    }
    // A join writes when it makes the group, or when a static member takes its place again.
    if is_new || (request.member_id.is_empty() && request.instance_id.is_some()) {
        soft.remember(hard, &id);
    }
    soft.open(hard, &id);
    let settings = soft.settings.clone();
    let live = soft.opened(&id);
    let took = join::join(live, &mut Cx { settings: &settings, now_ms, out }, token, request);
    if is_new && took {
        // Kafka stores a new group at once, so that it is known before its first generation.
        let value = GroupValue { state_since_ms: Some(now_ms), ..GroupValue::default() };
        out.record(Record::Group { group: id.clone(), value: Some(value) });
    }
    soft.settle(&id);
}

fn on_sync(
    hard: &Hard,
    soft: &mut Soft,
    now_ms: i64,
    token: Token,
    request: SyncRequest,
    out: &mut Outbox<GroupMachine>,
) {
    let id = request.group.clone();
    let Some(live) = soft.live(hard, &id) else {
        out.reply(token, Reply::Sync(SyncReply::refused(ErrorCode::UnknownMemberId)));
        return;
    };
    if live.state == State::Completing && live.is_leader(&request.member_id) {
        soft.remember(hard, &id);
    }
    let settings = soft.settings.clone();
    if let Some(live) = soft.live_mut(hard, &id) {
        sync::sync(live, &mut Cx { settings: &settings, now_ms, out }, token, request);
    }
}

fn on_heartbeat(
    hard: &Hard,
    soft: &mut Soft,
    now_ms: i64,
    token: Token,
    request: HeartbeatRequest,
    out: &mut Outbox<GroupMachine>,
) {
    let error = match soft.live(hard, &request.group) {
        None => ErrorCode::UnknownMemberId,
        Some(live) => {
            let cx = &mut Cx { settings: &soft.settings, now_ms, out };
            heartbeat::heartbeat(live, cx, &request).err().unwrap_or(ErrorCode::None)
        }
    };
    out.reply(token, Reply::Heartbeat(error));
}

fn on_leave(
    hard: &Hard,
    soft: &mut Soft,
    now_ms: i64,
    token: Token,
    request: LeaveRequest,
    out: &mut Outbox<GroupMachine>,
) {
    let id = &request.group;
    soft.remember(hard, id);
    let settings = soft.settings.clone();
    let members = match soft.live_mut(hard, id) {
        None => vec![ErrorCode::UnknownMemberId; request.members.len()],
        Some(live) => {
            leave::leave(live, &mut Cx { settings: &settings, now_ms, out }, &request.members)
        }
    };
    soft.settle(id);
    out.reply(token, Reply::Leave(LeaveReply { error: ErrorCode::None, members }));
}
