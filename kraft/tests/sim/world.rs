//! The scheduler: nodes, their disks, the links between them, one queue of events in virtual time.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use kraft::raft::{MemberChange, Outputs, RaftConfig, RaftError, RaftNode, Role};
use storage::kv::MemStore;
use uuid::Uuid;

use super::Summary;
use super::check::{App, History, Seen};
use super::plan::{Plan, Rng, mix};

const TICK_MS: u64 = 10;
const FAULT_MS: u64 = 20;
/// After healing, everything must be in order within this time.
const HEALING_MS: u64 = 6000;

struct Node {
    store: MemStore,
    directory: u64,
    /// `None` while it is down.
    raft: Option<RaftNode>,
    app: App,
    seen: Seen,
    last_snapshot: u64,
    /// Counts starts, so that events of an earlier life are dropped.
    life: u64,
    pump_pending: bool,
}

#[derive(Debug)]
enum Event {
    Tick { node: usize, life: u64 },
    Deliver { from: usize, to: usize, frame: Vec<u8> },
    Pump { node: usize, life: u64 },
    Start { node: usize },
    Client,
    Fault,
    Mend,
}

pub struct World {
    plan: Plan,
    rng: Rng,
    now_ms: u64,
    next_event: u64,
    events: BTreeMap<(u64, u64), Event>,
    nodes: Vec<Node>,
    voters: usize,
    /// Links that carry nothing, by direction.
    cut: BTreeSet<(usize, usize)>,
    history: History,
    healing: bool,
    proposals: u64,
    summary: Summary,
}

impl World {
    pub fn new(voters: usize, seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let plan = Plan::draw(voters, &mut rng);
        let count = voters + plan.learners;
        let mut world = World {
            plan,
            rng,
            now_ms: 0,
            next_event: 0,
            events: BTreeMap::new(),
            nodes: Vec::new(),
            voters,
            cut: BTreeSet::new(),
            history: History::default(),
            healing: false,
            proposals: 0,
            summary: Summary::default(),
        };
        for node in 0..count {
            world.nodes.push(Node {
                store: MemStore::new(),
                directory: node as u64,
                raft: None,
                app: App::default(),
                seen: Seen::default(),
                last_snapshot: 0,
                life: 0,
                pump_pending: false,
            });
            world.start(node);
        }
        world.schedule(1, Event::Client);
        world.schedule(FAULT_MS, Event::Fault);
        world
    }

    /// Runs with faults.
    pub fn trouble(&mut self) {
        let until_ms = self.plan.trouble_ms;
        while self.next_at().is_some_and(|at_ms| at_ms <= until_ms) {
            self.event();
        }
    }

    /// Mends everything, and waits until every member has the same state and takes new entries.
    pub fn heal(&mut self) {
        self.healing = true;
        self.cut.clear();
        for node in 0..self.nodes.len() {
            if self.nodes[node].raft.is_none() {
                self.start(node);
            }
        }
        let until_ms = self.now_ms + HEALING_MS;
        let floor = self.history.last_index();
        while self.now_ms < until_ms {
            if self.history.last_index() > floor + 3 && self.converged() {
                return;
            }
            self.event();
        }
        panic!("no convergence: {}", self.describe());
    }

    pub fn summary(&self) -> Summary {
        Summary {
            leaders: self.history.leaders(),
            committed: self.history.last_index(),
            acknowledged: self.history.acknowledged,
            ..self.summary.clone()
        }
    }

    fn converged(&self) -> bool {
        let Some(leader) = self.leader() else { return false };
        let app = self.nodes[leader].app;
        let raft = self.nodes[leader].raft.as_ref().expect("leaders run");
        let members = raft.status().members;
        let all = members.voters.iter().chain(&members.learners);
        let mut apps = all.map(|node| self.nodes[*node as usize].app);
        let everybody_joined = self.plan.member_changes > 0
            || members.voters.len() + members.learners.len() == self.nodes.len();
        everybody_joined && app.index == self.history.last_index() && apps.all(|it| it == app)
    }

    fn describe(&self) -> String {
        let nodes = self.nodes.iter().map(|node| {
            let status = node.raft.as_ref().map(RaftNode::status);
            format!("\n{status:?}")
        });
        format!("{:?}{}", self.plan, nodes.collect::<String>())
    }

    /// The running leader of the highest term.
    fn leader(&self) -> Option<usize> {
        let leads = |node: &Node| {
            let raft = node.raft.as_ref()?;
            (raft.role() == Role::Leader).then(|| raft.term())
        };
        let leaders = self.nodes.iter().enumerate();
        let leaders = leaders.filter_map(|(node, state)| Some((leads(state)?, node)));
        leaders.max().map(|(_, node)| node)
    }

    // Events.

    fn schedule(&mut self, after_ms: u64, event: Event) {
        self.next_event += 1;
        self.events.insert((self.now_ms + after_ms, self.next_event), event);
    }

    fn next_at(&self) -> Option<u64> {
        self.events.first_key_value().map(|((at_ms, _), _)| *at_ms)
    }

    fn trace(&mut self, what: u64) {
        self.summary.trace = mix(self.summary.trace ^ what.wrapping_add(self.now_ms << 32));
    }

    fn event(&mut self) {
        let ((at_ms, _), event) = self.events.pop_first().expect("ticks go on for ever");
        self.now_ms = at_ms;
        match event {
            Event::Tick { node, life } if self.nodes[node].life == life => self.tick(node),
            Event::Pump { node, life } if self.nodes[node].life == life => self.pump(node),
            Event::Tick { .. } | Event::Pump { .. } => {}
            Event::Deliver { from, to, frame } => self.deliver(from, to, &frame),
            Event::Start { node } => {
                if self.nodes[node].raft.is_none() {
                    self.start(node);
                }
            }
            Event::Client => self.client(),
            Event::Fault => self.fault(),
            Event::Mend => self.cut.clear(),
        }
    }

    fn start(&mut self, node: usize) {
        self.trace(node as u64 + 1000);
        let seed = self.rng.next();
        let phase_ms = self.rng.below(TICK_MS);
        let voters = (0..self.voters as i32).collect();
        let state = &mut self.nodes[node];
        let directory = Uuid::from_u128(u128::from(state.directory) + 1);
        let config = RaftConfig {
            entries_kept: self.plan.snapshot_each / 4,
            snapshot_chunk_bytes: 64,
            ..RaftConfig::new(node as i32, directory, voters, seed)
        };
        let kv = Box::new(state.store.open());
        let raft = RaftNode::new(config, kv);
        state.raft = Some(raft.unwrap_or_else(|error| panic!("node {node} cannot start: {error}")));
        // Nothing was handed out yet; what was applied before the crash is applied again.
        let status = state.raft.as_ref().map(RaftNode::status).expect("just started");
        let from_snapshot = status.snapshot_index > 1;
        state.app = App { index: if from_snapshot { 0 } else { status.snapshot_index }, hash: 0 };
        state.last_snapshot = status.snapshot_index;
        state.seen.restarted();
        state.life += 1;
        let life = state.life;
        state.pump_pending = false;
        self.schedule(phase_ms, Event::Tick { node, life });
        self.pump(node);
    }

    fn tick(&mut self, node: usize) {
        let life = self.nodes[node].life;
        self.schedule(TICK_MS, Event::Tick { node, life });
        if let Some(raft) = &mut self.nodes[node].raft {
            raft.tick().expect("ticks do not fail");
            self.soon(node);
        }
    }

    fn deliver(&mut self, from: usize, to: usize, frame: &[u8]) {
        let now_ms = self.now_ms as i64;
        self.trace((from * 64 + to) as u64 + mix(frame.len() as u64));
        let Some(raft) = &mut self.nodes[to].raft else { return };
        match raft.step(now_ms, from as i32, frame) {
            Ok(()) => {}
            // A wiped node is another one for those who knew it, in both directions.
            Err(RaftError::Refused { .. }) if self.summary.wiped > 0 => {}
            Err(error) => panic!("from {from} to {to}: {error}"),
        }
        self.soon(to);
    }

    /// Looks at the node's outputs now or, if the plan has late nodes, a little later; whatever
    /// arrives meanwhile is stepped first.
    fn soon(&mut self, node: usize) {
        let slow = self.plan.slow_node == Some(node) && !self.healing;
        let max_ms = if slow { 60 } else { self.plan.pump_delay_max_ms };
        if max_ms == 0 {
            self.pump(node);
        } else if !self.nodes[node].pump_pending {
            self.nodes[node].pump_pending = true;
            let life = self.nodes[node].life;
            let after_ms = self.rng.below(max_ms + 1);
            self.schedule(after_ms, Event::Pump { node, life });
        }
    }

    fn pump(&mut self, node: usize) {
        self.nodes[node].pump_pending = false;
        loop {
            let Some(raft) = &mut self.nodes[node].raft else { return };
            if !raft.has_ready() {
                let commit_index = raft.commit_index();
                let applied = self.nodes[node].app.index;
                assert_eq!(applied, commit_index, "committed and not handed out");
                return;
            }
            let performed = match raft.ready() {
                Ok(out) => self.perform(node, out),
                Err(error) => Err(error),
            };
            if let Err(error) = performed {
                assert!(matches!(error, RaftError::Storage(_)), "{error}");
                self.summary.failed_writes += 1;
                self.crash(node);
                return;
            }
        }
    }

    fn perform(&mut self, node: usize, out: Outputs) -> Result<(), RaftError> {
        self.trace(out.term ^ (out.commit_index << 20) ^ ((out.messages.len() as u64) << 40));
        let state = &mut self.nodes[node];
        let raft = state.raft.as_mut().expect("it just gave outputs");
        self.history.outputs(node, &mut state.seen, &out, raft.last_index());
        if let Some(snapshot) = &out.snapshot {
            state.app = App::restore(&snapshot.data);
            assert_eq!(state.app.index, snapshot.index);
            self.history.restored(state.app);
            state.last_snapshot = snapshot.index;
            self.summary.snapshots_installed += 1;
        }
        for entry in &out.committed {
            state.app.apply(entry);
            self.history.applied(node, entry, state.app);
        }
        raft.applied(state.app.index);
        let due = state.app.index - state.last_snapshot >= self.plan.snapshot_each;
        if due || out.snapshot_wanted {
            let data = Bytes::from(state.app.snapshot(self.plan.snapshot_padding));
            state.last_snapshot = state.app.index;
            raft.create_snapshot(state.app.index, data)?;
        }
        for (to, frame) in out.messages {
            self.send(node, to as usize, frame);
        }
        Ok(())
    }

    fn send(&mut self, from: usize, to: usize, frame: Vec<u8>) {
        assert_ne!(from, to, "a message to itself");
        let lost = !self.healing && self.rng.per_mille(self.plan.loss);
        if lost || self.cut.contains(&(from, to)) {
            return;
        }
        let delay_ms = 1 + self.rng.below(self.plan.delay_max_ms);
        if self.rng.per_mille(self.plan.duplicates) {
            let later_ms = delay_ms + self.rng.below(100);
            self.schedule(later_ms, Event::Deliver { from, to, frame: frame.clone() });
        }
        self.schedule(delay_ms, Event::Deliver { from, to, frame });
    }

    /// Proposes to whoever thinks it leads, now and then to somebody else.
    fn client(&mut self) {
        // While healing few entries are proposed: logs are truncated so soon here that a member far
        // away would never catch up with a busy leader.
        self.schedule(if self.healing { 100 } else { 5 }, Event::Client);
        self.join_learners();
        if !self.rng.per_mille(self.plan.proposals) {
            return;
        }
        let any = self.rng.below(self.nodes.len() as u64) as usize;
        let node = if self.rng.per_mille(100) { any } else { self.leader().unwrap_or(any) };
        self.proposals += 1;
        let mut data = self.proposals.to_be_bytes().to_vec();
        data.resize(8 + self.rng.below(100) as usize, 1);
        let Some(raft) = &mut self.nodes[node].raft else { return };
        match raft.propose(data.clone().into()) {
            Ok(proposed) => self.history.proposed(node, proposed, &data),
            Err(RaftError::NotLeader { .. } | RaftError::Busy) => return,
            Err(error) => panic!("{error}"),
        }
        self.soon(node);
    }

    /// The broker adds every node that registers; so does this, while nobody changes members.
    fn join_learners(&mut self) {
        if self.nodes.len() == self.voters {
            return;
        }
        let Some(leader) = self.leader() else { return };
        let directory = |node: &Node| Uuid::from_u128(u128::from(node.directory) + 1);
        let directories: Vec<Uuid> = self.nodes.iter().map(directory).collect();
        let raft = self.nodes[leader].raft.as_mut().expect("leaders run");
        let members = raft.status().members;
        let absent = (0..directories.len()).find(|node| {
            let node_id = *node as i32;
            !members.voters.contains(&node_id) && !members.learners.contains(&node_id)
        });
        let Some(node) = absent.filter(|node| *node >= self.voters) else { return };
        let add =
            MemberChange::AddLearner { node_id: node as i32, directory_id: directories[node] };
        self.change(leader, add);
    }

    fn change(&mut self, leader: usize, change: MemberChange) {
        let raft = self.nodes[leader].raft.as_mut().expect("leaders run");
        match raft.change_members(change) {
            Ok(_) => self.summary.member_changes += 1,
            Err(RaftError::Busy | RaftError::NotLeader { .. } | RaftError::Dead) => return,
            Err(error) => panic!("{change:?}: {error}"),
        }
        self.soon(leader);
    }

    // Faults.

    fn fault(&mut self) {
        if self.healing {
            return;
        }
        self.schedule(FAULT_MS, Event::Fault);
        let node = self.rng.below(self.nodes.len() as u64) as usize;
        if self.rng.per_mille(self.plan.crashes) {
            self.crash(node);
        }
        if self.rng.per_mille(self.plan.failing_writes) && self.nodes[node].raft.is_some() {
            let writes = self.rng.below(6);
            self.nodes[node].store.fail_after(writes);
        }
        if self.rng.per_mille(self.plan.partitions) {
            self.partition();
        }
        if self.rng.per_mille(self.plan.one_way_cuts) {
            let other = self.rng.below(self.nodes.len() as u64) as usize;
            self.cut.insert((node, other));
            let after_ms = self.rng.below(800);
            self.schedule(after_ms, Event::Mend);
        }
        if self.rng.per_mille(self.plan.transfers)
            && let Some(leader) = self.leader()
            && let Some(raft) = &mut self.nodes[leader].raft
        {
            match raft.transfer_leader(node as i32) {
                Ok(()) | Err(RaftError::Members(_)) => self.soon(leader),
                Err(error) => panic!("{error}"),
            }
        }
        if self.rng.per_mille(self.plan.wipes) && node >= self.voters {
            self.wipe(node);
        }
        if self.rng.per_mille(self.plan.member_changes) {
            self.change_members(node);
        }
    }

    /// Splits the nodes in two; messages cross in neither direction.
    fn partition(&mut self) {
        let side = self.rng.next();
        for from in 0..self.nodes.len() {
            for to in 0..self.nodes.len() {
                if (side >> from) & 1 != (side >> to) & 1 {
                    self.cut.insert((from, to));
                }
            }
        }
        let after_ms = self.rng.below(800);
        self.schedule(after_ms, Event::Mend);
    }

    fn crash(&mut self, node: usize) {
        let state = &mut self.nodes[node];
        if state.raft.take().is_none() {
            return;
        }
        state.life += 1;
        let survivors = self.rng.below(state.store.unsynced() as u64 + 1) as usize;
        state.store.crash(survivors);
        self.summary.crashes += 1;
        self.history.crashed(node);
        self.trace(node as u64 + 2000);
        let down_ms = self.rng.below(self.plan.down_max_ms);
        self.schedule(down_ms, Event::Start { node });
    }

    /// The disk is replaced: empty, and another one for everybody who knew the old.
    fn wipe(&mut self, node: usize) {
        self.crash(node);
        let state = &mut self.nodes[node];
        state.store = MemStore::new();
        state.directory += 1000;
        state.seen = Seen::default();
        self.summary.wiped += 1;
    }

    /// Promotes a learner, removes a voter while three remain, or lets a removed node come back.
    fn change_members(&mut self, node: usize) {
        let Some(leader) = self.leader() else { return };
        let node_id = node as i32;
        let raft = self.nodes[leader].raft.as_ref().expect("leaders run");
        let members = raft.status().members;
        let directory_id = Uuid::from_u128(u128::from(self.nodes[node].directory) + 1);
        if node == leader {
            return;
        }
        if members.learners.contains(&node_id) {
            self.change(leader, MemberChange::Promote { node_id });
        } else if !members.voters.contains(&node_id) {
            self.change(leader, MemberChange::AddLearner { node_id, directory_id });
        } else if members.voters.len() > 2 {
            self.change(leader, MemberChange::Remove { node_id });
        }
    }
}
