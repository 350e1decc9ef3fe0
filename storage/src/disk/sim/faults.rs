//! Which calls of the simulated disk fail. A list of rules, tried in order; no chance in it.

/// The kinds of call that a fault can hit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FaultOp {
    /// `open`, `list`, `stat`.
    Open,
    Read,
    /// `write_at`, `set_len`.
    Write,
    Allocate,
    /// `sync_data`.
    Sync,
    SyncDir,
    /// A new file or directory.
    Create,
    Rename,
    /// `remove_file`, `remove_dir_all`.
    Remove,
}

/// What a hit call does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// Fails with EIO. A write may have written a part; a sync marks its pages clean, so the bytes
    /// are lost at a crash although later syncs answer OK.
    Io,
    /// Fails with ENOSPC, else as `Io`.
    Full,
    /// A sync answers OK and does nothing (a lying disk). On other calls the same as `Io`.
    Lie,
}

/// One rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub op: FaultOp,
    /// Hits calls whose path contains this; the empty string hits all.
    pub path: String,
    /// Matching calls to let pass first: 0 hits the very next one.
    pub skip: u64,
    /// Calls to hit after that; `u64::MAX` for all.
    pub count: u64,
    pub kind: FaultKind,
}

impl Fault {
    /// EIO on every matching call.
    pub fn io(op: FaultOp, path: &str) -> Fault {
        Fault { op, path: path.to_owned(), skip: 0, count: u64::MAX, kind: FaultKind::Io }
    }

    /// Only on the N-th matching call, counted from 0.
    pub fn nth(self, skip: u64) -> Fault {
        Fault { skip, count: 1, ..self }
    }

    /// Another kind of failure.
    pub fn kind(self, kind: FaultKind) -> Fault {
        Fault { kind, ..self }
    }
}

/// The rules in force.
#[derive(Clone, Default, Debug)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Counts a call; the kind of failure if a rule hits it.
    pub fn hit(&mut self, op: FaultOp, path: &str) -> Option<FaultKind> {
        for rule in &mut self.0 {
            if rule.op != op || !path.contains(&rule.path) {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
            } else if rule.count > 0 {
                rule.count -= u64::from(rule.count != u64::MAX);
                return Some(rule.kind);
            }
        }
        None
    }
}
