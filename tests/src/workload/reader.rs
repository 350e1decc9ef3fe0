//! A reader: one partition from its start, by offset, until the run stops.

use protocol_compat::error::ErrorCode;

use super::calls::{self, EARLIEST, LATEST};
use super::{Run, back_off};
use crate::client::Client;
use crate::clock::pause_ms;
use crate::history::Event;

/// Reads a partition until the run stops.
pub async fn read(run: Run, reader: u32, partition: i32) {
    let (mut client, dice) = (run.client(1_000 + reader), run.dice("reader", reader));
    let mut position = 0;
    while !run.stopping() {
        // Sometimes less than one batch: the first comes whole all the same.
        let max_bytes = if dice.chance(200) { 100 } else { 64 << 10 };
        let fetched = match calls::fetch(&mut client, partition, position, max_bytes).await {
            Ok(fetched) => fetched,
            Err(_) => {
                back_off(&dice).await;
                continue;
            }
        };
        match fetched.error {
            ErrorCode::None => {
                let next = fetched.records.last().map_or(position, |seen| seen.offset + 1);
                run.record(Event::Poll {
                    reader,
                    partition,
                    position,
                    records: fetched.records,
                    high_watermark: fetched.high_watermark,
                    log_start: fetched.log_start,
                });
                position = next;
                pause_ms(dice.between(0, 100)).await;
            }
            ErrorCode::OffsetOutOfRange => {
                if let Ok(start) = reposition(&run, &mut client, reader, partition).await {
                    position = start;
                }
            }
            error => {
                if !error.is_retriable() {
                    run.odd(format!("reader {reader} was told {}", error.name()));
                }
                back_off(&dice).await;
            }
        }
    }
}

/// Goes to the log start. What it is told on the way counts for the watermark.
async fn reposition(
    run: &Run,
    client: &mut Client,
    reader: u32,
    partition: i32,
) -> anyhow::Result<i64> {
    let high_watermark = calls::list_offset(client, partition, LATEST).await?;
    let log_start = calls::list_offset(client, partition, EARLIEST).await?;
    let position = log_start;
    run.record(Event::Seek { reader, partition, position });
    let records = Vec::new();
    run.record(Event::Poll { reader, partition, position, records, high_watermark, log_start });
    Ok(position)
}
