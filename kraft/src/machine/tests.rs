//! Tests of the shard with a machine small enough to see through: leases that expire.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::rig::Rig;
use super::*;

/// Names with a value; each dies 100 ms after its last write unless it is pinned.
struct Leases;

#[derive(Clone, Debug)]
enum Input {
    Put(u8, i64),
    Get(u8),
    /// Answered when the name changes next.
    Watch(u8),
    Drop(u8),
}

#[derive(Clone, PartialEq, Debug)]
enum Record {
    Put(u8, i64),
    Drop(u8),
}

#[derive(Clone, PartialEq, Debug)]
enum Reply {
    Value(Option<i64>),
    Refused(Refused),
}

#[derive(Default)]
struct Soft {
    watchers: BTreeMap<u8, Vec<Token>>,
}

const LEASE_MS: i64 = 100;

impl Machine for Leases {
    type Hard = BTreeMap<u8, i64>;
    type Soft = Soft;
    type Input = Input;
    type Record = Record;
    type Reply = Reply;
    type Effect = u8;
    type TimerKey = u8;

    fn decide(
        hard: &Self::Hard,
        soft: &mut Soft,
        now_ms: i64,
        token: Token,
        input: Input,
        out: &mut Outbox<Self>,
    ) {
        match input {
            Input::Put(name, value) => {
                out.record(Record::Put(name, value));
                out.reply(token, Reply::Value(Some(value)));
                for watcher in soft.watchers.remove(&name).unwrap_or_default() {
                    out.reply(watcher, Reply::Value(Some(value)));
                }
                out.arm(name, now_ms + LEASE_MS);
                out.effect(name);
            }
            Input::Get(name) => out.reply(token, Reply::Value(hard.get(&name).copied())),
            Input::Watch(name) => soft.watchers.entry(name).or_default().push(token),
            Input::Drop(name) => {
                if hard.contains_key(&name) {
                    out.record(Record::Drop(name));
                    out.cancel(name);
                }
                out.reply(token, Reply::Value(None));
            }
        }
    }

    fn apply(hard: &mut Self::Hard, record: &Record) {
        match record {
            Record::Put(name, value) => hard.insert(*name, *value),
            Record::Drop(name) => hard.remove(name),
        };
    }

    fn loaded(hard: &Self::Hard, _: &mut Soft, now_ms: i64, out: &mut Outbox<Self>) {
        hard.keys().for_each(|name| out.arm(*name, now_ms + LEASE_MS));
    }

    fn timer(hard: &Self::Hard, _: &mut Soft, _: i64, name: u8, out: &mut Outbox<Self>) {
        if hard.contains_key(&name) {
            out.record(Record::Drop(name));
            out.effect(name);
        }
    }

    fn refused(_: Reply, why: Refused) -> Reply {
        Reply::Refused(why)
    }

    fn closing(_: &Self::Hard, soft: &mut Soft, why: Refused, out: &mut Outbox<Self>) {
        for token in std::mem::take(&mut soft.watchers).into_values().flatten() {
            out.reply(token, Reply::Refused(why));
        }
    }
}

fn tokens(rig: &mut Rig<Leases>) -> Vec<u64> {
    std::mem::take(&mut rig.replies).into_iter().map(|(token, _)| token.0).collect()
}

#[test]
fn replies_and_effects_wait_for_the_watermark() {
    let mut rig = Rig::<Leases>::new(0);
    rig.commit_at_once = false;
    rig.send(1, Input::Get(1)); // Nothing was written: nothing to wait for.
    assert_eq!(tokens(&mut rig), [1]);
    rig.send(2, Input::Put(1, 10));
    rig.send(3, Input::Get(1)); // Saw 10, so it may leave no earlier than 10 is committed.
    rig.send(4, Input::Put(2, 20));
    assert_eq!((rig.shard.parked(), rig.effects.len()), (3, 0));
    let released = rig.shard.committed(1);
    assert_eq!(released.replies[0], (Token(2), Reply::Value(Some(10))));
    assert_eq!(released.replies[1], (Token(3), Reply::Value(Some(10))));
    assert_eq!((released.replies.len(), released.effects), (2, vec![1]));
    assert!(rig.shard.committed(0).is_empty()); // Never back.
    rig.commit();
    assert_eq!((tokens(&mut rig), &rig.effects[..]), (vec![4], &[2][..]));
}

#[test]
fn a_reply_after_loading_waits_for_what_was_loaded() {
    let mut shard = Shard::<Leases>::new();
    let append = &mut |_: &[Record]| Ok(9);
    assert_eq!(shard.step(0, Token(1), Input::Get(1), append).err(), Some(Refused::Loading));
    shard.load(&Record::Put(1, 10));
    shard.load(&Record::Put(2, 20));
    assert!(shard.activate(0, 2, 1).is_empty());
    assert!(shard.step(0, Token(1), Input::Get(1), append).unwrap().is_empty());
    assert_eq!(shard.committed(2).replies, [(Token(1), Reply::Value(Some(10)))]);
}

#[test]
fn a_failed_append_changes_nothing() {
    let mut rig = Rig::<Leases>::new(0);
    rig.send(1, Input::Put(1, 10));
    rig.effects.clear();
    rig.refuse = Some(Refused::Storage);
    rig.commit_at_once = false; // The refusal leaves although no watermark moves.
    rig.advance(50);
    assert_eq!(rig.ask(2, Input::Put(1, 11)), Reply::Refused(Refused::Storage));
    assert_eq!(rig.ask(3, Input::Drop(1)), Reply::Refused(Refused::Storage));
    assert_eq!(rig.shard.deadline(&1), Some(LEASE_MS)); // Neither moved nor cancelled.
    assert_eq!(rig.shard.hard().get(&1), Some(&10));
    assert!(rig.effects.is_empty());
    rig.check_replay();
}

#[test]
fn a_timer_whose_append_failed_comes_again() {
    let mut rig = Rig::<Leases>::new(0);
    rig.send(1, Input::Put(1, 10));
    rig.refuse = Some(Refused::Storage);
    rig.advance(LEASE_MS);
    assert_eq!(rig.shard.next_deadline(), Some(LEASE_MS + TIMER_RETRY_MS));
    rig.refuse = None;
    rig.advance(TIMER_RETRY_MS);
    assert!(rig.shard.hard().is_empty());
    assert_eq!(rig.shard.next_deadline(), None);
    rig.check_replay();
}

#[test]
fn due_timers_fire_by_deadline_then_key() {
    let mut rig = Rig::<Leases>::new(0);
    for name in [9, 3, 5] {
        rig.send(u64::from(name), Input::Put(name, 0));
    }
    rig.now_ms = 1;
    rig.send(1, Input::Put(1, 0));
    rig.send(2, Input::Put(3, 0)); // Moves 3 behind 5 and 9.
    rig.effects.clear();
    rig.now_ms = 500;
    rig.advance(0);
    assert_eq!(rig.effects, [5, 9, 1, 3]);
}

#[test]
fn closing_answers_everybody_once() {
    let mut rig = Rig::<Leases>::new(0);
    rig.commit_at_once = false;
    rig.send(1, Input::Watch(7));
    rig.send(2, Input::Put(1, 10));
    rig.send(3, Input::Get(1));
    let mut released = rig.shard.close(Refused::NotLeader);
    released.replies.sort_by_key(|(token, _)| *token);
    let refused = Reply::Refused(Refused::NotLeader);
    let want: Vec<_> = [1, 2, 3].map(|token| (Token(token), refused.clone())).into();
    assert_eq!(released.replies, want);
    assert!(released.effects.is_empty());
    assert!(rig.shard.close(Refused::Closing).is_empty());
    assert!(rig.shard.committed(99).is_empty());
    let append = &mut |_: &[Record]| Ok(9);
    let again = rig.shard.step(0, Token(4), Input::Get(1), append);
    assert_eq!(again.err(), Some(Refused::NotLeader));
    rig.shard.load(&Record::Drop(1)); // A load that outlived the leadership.
    assert!(rig.shard.activate(0, 0, 0).is_empty());
}

/// What a random run does next.
#[derive(Clone, Debug)]
enum Act {
    Send(Input),
    Advance(i64),
    Commit,
    DiskFull(bool),
    FailOver,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let name = 0u8..4;
    let act = prop_oneof![
        6 => (name.clone(), 0i64..100).prop_map(|(name, value)| Act::Send(Input::Put(name, value))),
        3 => name.clone().prop_map(|name| Act::Send(Input::Get(name))),
        2 => name.clone().prop_map(|name| Act::Send(Input::Watch(name))),
        2 => name.prop_map(|name| Act::Send(Input::Drop(name))),
        3 => (0i64..150).prop_map(Act::Advance),
        2 => Just(Act::Commit),
        1 => any::<bool>().prop_map(Act::DiskFull),
        1 => Just(Act::FailOver),
    ];
    proptest::collection::vec(act, 0..80)
}

fn run(acts: &[Act]) -> Rig<Leases> {
    let mut rig = Rig::<Leases>::new(0);
    rig.commit_at_once = false;
    for (token, act) in acts.iter().enumerate() {
        match act.clone() {
            Act::Send(input) => rig.send(token as u64, input),
            Act::Advance(ms) => rig.advance(ms),
            Act::Commit => rig.commit(),
            Act::DiskFull(full) => rig.refuse = full.then_some(Refused::Storage),
            Act::FailOver => rig.fail_over(Soft::default()),
        }
        rig.check_replay();
    }
    let released = rig.shard.close(Refused::Closing);
    rig.replies.extend(released.replies);
    rig
}

proptest! {
    #[test]
    fn replay_gives_the_live_state_and_each_token_one_reply(acts in acts()) {
        let rig = run(&acts);
        let mut answered: Vec<u64> = rig.replies.iter().map(|(token, _)| token.0).collect();
        answered.sort_unstable();
        let sent = acts.iter().enumerate().filter(|(_, act)| matches!(act, Act::Send(_)));
        let mut asked: Vec<u64> = sent.map(|(token, _)| token as u64).collect();
        // A watcher whose name was written while the disk was full is answered by the default
        // `append_failed`, so nobody is forgotten.
        asked.sort_unstable();
        prop_assert_eq!(answered, asked);
    }

    #[test]
    fn the_same_inputs_give_the_same_outputs(acts in acts()) {
        let (one, two) = (run(&acts), run(&acts));
        prop_assert_eq!(one.log, two.log);
        prop_assert_eq!(one.replies, two.replies);
        prop_assert_eq!(one.effects, two.effects);
    }
}
