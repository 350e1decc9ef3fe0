//! What must hold, whatever happens. The one history that all nodes agree on, and who led when.

use std::collections::BTreeMap;

use kraft::raft::{Entry, Outputs, Proposed, Role};

use super::plan::mix;

/// What a node's state machine holds: the hash of all entries up to `index`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct App {
    pub index: u64,
    pub hash: u64,
}

impl App {
    pub fn apply(&mut self, entry: &Entry) {
        assert_eq!(entry.index, self.index + 1, "an entry was skipped or repeated");
        let data = entry.data.iter().fold(entry.term, |hash, byte| mix(hash ^ u64::from(*byte)));
        *self = App { index: entry.index, hash: mix(self.hash ^ data) };
    }

    /// Bytes from which another node restores; padding makes it span several chunks.
    pub fn snapshot(&self, padding: u64) -> Vec<u8> {
        let mut bytes = [self.index.to_be_bytes(), self.hash.to_be_bytes()].concat();
        bytes.resize(16 + (self.hash % (padding + 1)) as usize, 7);
        bytes
    }

    pub fn restore(bytes: &[u8]) -> App {
        let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
        App { index: number(0), hash: number(8) }
    }
}

/// What one node showed so far. Terms survive crashes, the commit index need not.
#[derive(Default)]
pub struct Seen {
    term: u64,
    commit_index: u64,
}

impl Seen {
    pub fn restarted(&mut self) {
        self.commit_index = 0;
    }
}

#[derive(Default)]
pub struct History {
    /// By index: term and the hash of all up to it. The first node to apply an index writes it.
    committed: BTreeMap<u64, (u64, u64)>,
    leaders: BTreeMap<u64, usize>,
    /// Proposals of nodes that still run, by (index, term), with the node and a hash of the data.
    proposed: BTreeMap<(u64, u64), (usize, u64)>,
    pub acknowledged: u64,
}

impl History {
    pub fn last_index(&self) -> u64 {
        self.committed.last_key_value().map_or(0, |(index, _)| *index)
    }

    pub fn leaders(&self) -> u64 {
        self.leaders.len() as u64
    }

    pub fn proposed(&mut self, node: usize, proposed: Proposed, data: &[u8]) {
        let key = (proposed.index, proposed.term);
        let before = self.proposed.insert(key, (node, hash(data)));
        assert!(before.is_none(), "two proposals at {key:?}");
    }

    /// A crash leaves nobody to acknowledge to.
    pub fn crashed(&mut self, node: usize) {
        self.proposed.retain(|_, (of, _)| *of != node);
    }

    /// Leader completeness: a leader of a later term has everything that was committed before.
    /// One leader per term. Terms and commits never back.
    pub fn outputs(&mut self, node: usize, seen: &mut Seen, out: &Outputs, last_index: u64) {
        assert!(out.term >= seen.term, "term back from {} to {}", seen.term, out.term);
        assert!(out.commit_index >= seen.commit_index, "commit index back");
        *seen = Seen { term: out.term, commit_index: out.commit_index };
        if out.role != Role::Leader {
            return;
        }
        let leader = self.leaders.entry(out.term).or_insert(node);
        assert_eq!(*leader, node, "two leaders in term {}", out.term);
        if let Some((index, (term, _))) = self.committed.last_key_value() {
            let has_all = last_index >= *index;
            assert!(out.term < *term || has_all, "a leader lacks committed entry {index}");
        }
    }

    pub fn applied(&mut self, node: usize, entry: &Entry, app: App) {
        let known = self.committed.entry(entry.index).or_insert((entry.term, app.hash));
        assert_eq!(*known, (entry.term, app.hash), "histories differ at {}", entry.index);
        let key = (entry.index, entry.term);
        if let Some((by, data)) = self.proposed.get(&key).copied()
            && by == node
        {
            assert_eq!(data, hash(&entry.data), "another entry in place of a proposal");
            self.proposed.remove(&key);
            self.acknowledged += 1;
        }
    }

    pub fn restored(&self, app: App) {
        let known = self.committed.get(&app.index).map(|(_, hash)| *hash);
        assert_eq!(known, Some(app.hash), "a snapshot of another history at {}", app.index);
    }
}

fn hash(data: &[u8]) -> u64 {
    data.iter().fold(0, |hash, byte| mix(hash ^ u64::from(*byte)))
}
