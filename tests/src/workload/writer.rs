//! A writer: one partition, acks=all, a batch at a time, each sent until its fate is known.

use bytes::Bytes;
use protocol_compat::batch::BatchBuilder;
use protocol_compat::compression::Codec;
use protocol_compat::error::ErrorCode;

use super::{Run, back_off, calls, value};
use crate::client::Client;
use crate::clock::{START_MS, pause_ms};
use crate::dice::Dice;
use crate::history::{Event, Outcome, RecordId};

/// A writer without idempotence gives up after so many attempts: its record may be there or not.
const ATTEMPTS_MAX: u32 = 3;

#[derive(Clone, Copy, Debug)]
pub struct WriterPlan {
    pub writer: u32,
    pub partition: i32,
    pub idempotent: bool,
    /// Whether an idempotent writer says its id and numbers. Without them it is as if the broker
    /// did not look at them.
    pub numbered: bool,
    pub batches: u32,
    /// The longest pause between two batches.
    pub pause_max_ms: u64,
}

struct Writer {
    run: Run,
    plan: WriterPlan,
    client: Client,
    dice: Dice,
    /// Id and epoch; -1 without idempotence.
    producer: (i64, i16),
    seq: u32,
}

/// Writes all batches of the plan.
pub async fn write(run: Run, plan: WriterPlan) {
    let (client, dice) = (run.client(plan.writer), run.dice("writer", plan.writer));
    let mut writer = Writer { run, plan, client, dice, producer: (-1, -1), seq: 0 };
    if plan.idempotent {
        writer.producer = loop {
            match calls::init_producer(&mut writer.client).await {
                Ok(producer) => break producer,
                Err(error) => {
                    writer.run.trouble("writer", plan.writer, format!("{error:#}"));
                    back_off(&writer.dice).await;
                }
            }
        };
    }
    for _ in 0..plan.batches {
        let count = writer.dice.between(1, 3) as u32;
        writer.write_batch(count).await;
        writer.seq += count;
        pause_ms(writer.dice.between(0, plan.pause_max_ms)).await;
    }
}

impl Writer {
    async fn write_batch(&mut self, count: u32) {
        let WriterPlan { writer, partition, idempotent, .. } = self.plan;
        let ids: Vec<RecordId> =
            (0..count).map(|at| RecordId { writer, seq: self.seq + at }).collect();
        for id in &ids {
            self.run.record(Event::Invoke { id: *id, partition, idempotent });
        }
        let batch = self.batch(&ids);
        let (outcome, base_offset) = self.send(&batch).await;
        for (at, id) in (0..).zip(ids) {
            self.run.record(Event::Answer { id, outcome, offset: base_offset + at });
        }
    }

    fn batch(&self, ids: &[RecordId]) -> Bytes {
        let codecs = [Codec::None, Codec::None, Codec::Lz4, Codec::Zstd];
        let codec = codecs[self.dice.below(codecs.len() as u64) as usize];
        let mut batch = BatchBuilder::new(0, codec);
        if self.plan.idempotent && self.plan.numbered {
            let (id, epoch) = self.producer;
            batch = batch.producer(id, epoch, self.seq as i32, false);
        }
        let timestamp = START_MS + self.run.clock.now_ms() as i64;
        for id in ids {
            let value = value::encode(*id, self.plan.partition);
            batch.append(timestamp, None, Some(&value), &[]);
        }
        batch.build().freeze()
    }

    /// Sends a batch until its fate is known, or as often as the plan allows.
    async fn send(&mut self, batch: &Bytes) -> (Outcome, i64) {
        let mut maybe_there = false;
        for attempt in 1.. {
            match calls::produce(&mut self.client, self.plan.partition, batch.clone()).await {
                Ok((ErrorCode::None, base_offset)) => return (Outcome::Ok, base_offset),
                Ok((error, _)) => {
                    self.run.trouble("writer", self.plan.writer, error.name().to_owned());
                    let appended = may_be_appended(error);
                    maybe_there |= appended;
                    if !appended && !error.is_retriable() {
                        let (writer, seq) = (self.plan.writer, self.seq);
                        let name = error.name();
                        self.run.odd(format!("writer {writer} at {seq} was told {name}"));
                        break;
                    }
                }
                Err(error) => {
                    self.run.trouble("writer", self.plan.writer, format!("{error:#}"));
                    maybe_there = true;
                }
            }
            if !self.plan.idempotent && attempt >= ATTEMPTS_MAX {
                break;
            }
            back_off(&self.dice).await;
        }
        (if maybe_there { Outcome::Unknown } else { Outcome::Failed }, -1)
    }
}

/// Whether records may be in the log although this was the answer.
fn may_be_appended(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::RequestTimedOut
            | ErrorCode::NotEnoughReplicasAfterAppend
            | ErrorCode::KafkaStorageError
            | ErrorCode::NotLeaderOrFollower
            | ErrorCode::UnknownServerError
    )
}
