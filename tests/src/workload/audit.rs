//! The end of a run: everything that a partition holds.

use anyhow::bail;
use protocol_compat::error::ErrorCode;

use super::calls::{self, EARLIEST, LATEST};
use super::{Run, back_off};
use crate::client::Client;
use crate::history::Event;

/// Attempts before the node counts as stuck.
const ATTEMPTS_MAX: u32 = 100;

/// Writes down all records of a partition between its start and its watermark.
///
/// # Errors
/// The node does not answer, or not to the end.
pub async fn audit(run: &Run, partition: i32) -> anyhow::Result<()> {
    let (mut client, dice) = (run.client(2_000), run.dice("audit", 0));
    let mut attempt = 0;
    loop {
        match attempt_audit(&mut client, partition).await {
            Ok(event) => {
                run.record(event);
                return Ok(());
            }
            Err(error) if attempt >= ATTEMPTS_MAX => return Err(error),
            Err(_) => back_off(&dice).await,
        }
        attempt += 1;
    }
}

async fn attempt_audit(client: &mut Client, partition: i32) -> anyhow::Result<Event> {
    let log_start = calls::list_offset(client, partition, EARLIEST).await?;
    let high_watermark = calls::list_offset(client, partition, LATEST).await?;
    let (mut records, mut position) = (Vec::new(), log_start);
    while position < high_watermark {
        let fetched = calls::fetch(client, partition, position, 256 << 10).await?;
        if fetched.error != ErrorCode::None {
            bail!("the audit was told {}", fetched.error.name());
        }
        let Some(last) = fetched.records.last() else {
            bail!("nothing at {partition}:{position} with the end at {high_watermark}");
        };
        position = last.offset + 1;
        records.extend(fetched.records);
    }
    Ok(Event::Final { partition, log_start, high_watermark, records })
}
