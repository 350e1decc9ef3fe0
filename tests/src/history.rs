//! What clients did and saw in a run, in the order in which it happened: the input of the checker.

/// A record: its writer and its number there. Never used twice in a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RecordId {
    pub writer: u32,
    pub seq: u32,
}

/// What a client knows about something it asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Ok,
    /// Certainly not done.
    Failed,
    /// Done or not: nobody told.
    Unknown,
}

/// A record as somebody read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    pub offset: i64,
    /// `None`: the value is none of this run, or damaged.
    pub id: Option<RecordId>,
    /// The partition that the value names.
    pub partition: i32,
}

/// One thing that happened. Partitions are those of the run's only topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A writer is about to send a record for the first time.
    Invoke {
        id: RecordId,
        partition: i32,
        idempotent: bool,
    },
    /// The record's fate; `offset` when it is `Ok`.
    Answer {
        id: RecordId,
        outcome: Outcome,
        offset: i64,
    },
    /// A reader that started at `position` got these records.
    Poll {
        reader: u32,
        partition: i32,
        position: i64,
        records: Vec<Seen>,
        high_watermark: i64,
        log_start: i64,
    },
    /// A reader goes on elsewhere by its own will (its position was deleted).
    Seek {
        reader: u32,
        partition: i32,
        position: i64,
    },
    /// A deletion of the records below `offset` was asked for, or answered.
    Delete {
        partition: i32,
        offset: i64,
    },
    /// The node went down without an orderly stop.
    Crash,
    CommitInvoke {
        group: u32,
        partition: i32,
        offset: i64,
    },
    CommitAnswer {
        group: u32,
        partition: i32,
        offset: i64,
        outcome: Outcome,
    },
    /// The committed offset as asked for; -1 when there is none.
    Committed {
        group: u32,
        partition: i32,
        offset: i64,
    },
    /// After everything: all records of a partition between its start and its watermark.
    Final {
        partition: i32,
        log_start: i64,
        high_watermark: i64,
        records: Vec<Seen>,
    },
}

/// An event and the virtual time at which it happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct At {
    pub at_ms: u64,
    pub event: Event,
}

/// Events in real order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    pub events: Vec<At>,
}

impl History {
    pub fn push(&mut self, at_ms: u64, event: Event) {
        self.events.push(At { at_ms, event });
    }

    pub fn iter(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().map(|at| &at.event)
    }
}
