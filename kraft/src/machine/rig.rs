//! Test support: a shard on a log in memory, for the tests of any [`Machine`]. Nothing of the
//! broker itself uses it.

use super::{Machine, Refused, Released, Shard, Token};

/// One shard, its log, its clock, and everything it ever released.
pub struct Rig<M: Machine> {
    /// Ms since 1970; moved by [`Rig::advance`] only.
    pub now_ms: i64,
    /// The shard under test.
    pub shard: Shard<M>,
    /// Every record that was appended; record `i` has offset `i`.
    pub log: Vec<M::Record>,
    /// Released and not yet taken by the test.
    pub replies: Vec<(Token, M::Reply)>,
    /// Released and not yet taken by the test.
    pub effects: Vec<M::Effect>,
    /// While set, appends fail with this.
    pub refuse: Option<Refused>,
    /// While false, appends do not move the watermark; [`Rig::commit`] does.
    pub commit_at_once: bool,
}

impl<M: Machine> Rig<M>
where
    M::Record: Clone,
{
    /// An active shard on an empty log; what is appended is committed at once.
    pub fn new(now_ms: i64) -> Self {
        Self::on_log(now_ms, Vec::new())
    }

    /// A shard that loaded `log`, all of it committed: a failover, as a new leader sees it.
    pub fn on_log(now_ms: i64, log: Vec<M::Record>) -> Self {
        Self::with_soft(now_ms, log, M::Soft::default())
    }

    /// The same with prepared soft state.
    pub fn with_soft(now_ms: i64, log: Vec<M::Record>, soft: M::Soft) -> Self {
        let mut shard = Shard::with_soft(soft);
        log.iter().for_each(|record| shard.load(record));
        let end_offset = log.len() as i64;
        let released = shard.activate(now_ms, end_offset, end_offset);
        let mut rig = Rig {
            now_ms,
            shard,
            log,
            replies: Vec::new(),
            effects: Vec::new(),
            refuse: None,
            commit_at_once: true,
        };
        rig.keep(released);
        rig
    }

    /// One input; panics if the shard does not take it.
    pub fn send(&mut self, token: u64, input: M::Input) {
        let Rig { now_ms, shard, log, refuse, .. } = self;
        let append = &mut |records: &[M::Record]| append_to(log, *refuse, records);
        let released = shard.step(*now_ms, Token(token), input, append);
        let released = released.unwrap_or_else(|why| panic!("the shard refused: {why:?}"));
        self.keep(released);
        self.settle();
    }

    /// One input and the reply it got at once; panics if there is none.
    pub fn ask(&mut self, token: u64, input: M::Input) -> M::Reply {
        self.send(token, input);
        self.take_reply(token).unwrap_or_else(|| panic!("no reply to token {token}"))
    }

    /// Takes the reply to a token out of what was released.
    pub fn take_reply(&mut self, token: u64) -> Option<M::Reply> {
        let at = self.replies.iter().position(|(of, _)| of.0 == token)?;
        Some(self.replies.remove(at).1)
    }

    /// Moves the clock on by `ms`, stopping at each deadline on the way to fire.
    pub fn advance(&mut self, ms: i64) {
        let until_ms = self.now_ms + ms;
        // A machine that keeps arming timers in the past would never let the clock go on.
        for _ in 0..100_000 {
            match self.shard.next_deadline().filter(|at_ms| *at_ms <= until_ms) {
                Some(at_ms) => self.now_ms = self.now_ms.max(at_ms),
                None => {
                    self.now_ms = until_ms;
                    return;
                }
            }
            let Rig { now_ms, shard, log, refuse, .. } = self;
            let append = &mut |records: &[M::Record]| append_to(log, *refuse, records);
            let released = shard.fire(*now_ms, append);
            self.keep(released);
            self.settle();
        }
        panic!("timers keep firing at {}", self.now_ms);
    }

    /// Everything appended so far is committed.
    pub fn commit(&mut self) {
        let released = self.shard.committed(self.log.len() as i64);
        self.keep(released);
    }

    /// Leadership moves on and comes back: callers get their answers, a new shard loads the same
    /// log.
    pub fn fail_over(&mut self, soft: M::Soft) {
        let released = self.shard.close(Refused::NotLeader);
        self.keep(released);
        let next = Self::with_soft(self.now_ms, std::mem::take(&mut self.log), soft);
        self.shard = next.shard;
        self.log = next.log;
        self.effects.extend(next.effects);
    }

    /// Replays the log into fresh hard state and compares: records are the only change.
    #[track_caller]
    pub fn check_replay(&self)
    where
        M::Hard: PartialEq + std::fmt::Debug,
    {
        let mut replayed = M::Hard::default();
        self.log.iter().for_each(|record| M::apply(&mut replayed, record));
        assert_eq!(&replayed, self.shard.hard(), "replaying the log gives another state");
    }

    fn settle(&mut self) {
        if self.commit_at_once {
            self.commit();
        }
    }

    fn keep(&mut self, released: Released<M>) {
        self.replies.extend(released.replies);
        self.effects.extend(released.effects);
    }
}

fn append_to<R: Clone>(
    log: &mut Vec<R>,
    refuse: Option<Refused>,
    records: &[R],
) -> Result<i64, Refused> {
    if let Some(why) = refuse {
        return Err(why);
    }
    log.extend_from_slice(records);
    Ok(log.len() as i64)
}
