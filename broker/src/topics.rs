//! The partitions of `__consumer_offsets` as the group coordinator sees them.

use std::sync::Arc;

use bytes::BytesMut;
use protocol_compat::batch::BatchHeader;
use protocol_compat::error::ErrorCode;
use storage::producers::Origin;

use crate::errors;
use crate::groups::{GroupLog, LogBounds};
use crate::node::OFFSETS_TOPIC;
use crate::partition::table::PartitionTable;
use crate::partition::{Append, Partition};

/// Finds the partitions at each call: they come and go.
pub struct GroupTopics {
    pub partitions: Arc<PartitionTable>,
}

impl GroupTopics {
    fn partition(&self, index: i32) -> Result<Arc<Partition>, ErrorCode> {
        let partition = self.partitions.partition(OFFSETS_TOPIC, index);
        partition.filter(|partition| partition.is_leader()).ok_or(ErrorCode::NotLeaderOrFollower)
    }
}

impl GroupLog for GroupTopics {
    fn append(
        &self,
        partition: i32,
        leader_epoch: i32,
        mut batch: BytesMut,
        now_ms: i64,
    ) -> Result<i64, ErrorCode> {
        let partition = self.partition(partition)?;
        if partition.leader_epoch() != leader_epoch {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        let header = BatchHeader::parse(&batch).map_err(|_| ErrorCode::CorruptMessage)?;
        let append = Append { now_ms, origin: Origin::Coordinator, waker: None };
        let written = partition
            .append(&mut batch, i64::from(header.record_count), &append)
            .map_err(|error| errors::write_code(&error))?;
        Ok(written.end_offset)
    }

    fn bounds(&self, partition: i32) -> Result<LogBounds, ErrorCode> {
        let partition = self.partition(partition)?;
        Ok(LogBounds {
            start_offset: partition.log_start_offset(),
            end_offset: partition.log_end_offset(),
            high_watermark: partition.high_watermark(),
        })
    }

    fn read(
        &self,
        partition: i32,
        from_offset: i64,
        max_bytes: usize,
    ) -> Result<Vec<u8>, ErrorCode> {
        let view = self.partition(partition)?.view();
        let slice = view
            .read(from_offset, max_bytes, view.log_end_offset(), true)
            .map_err(|error| errors::read_code(&error))?;
        let Some(slice) = slice else {
            return Ok(Vec::new());
        };
        let mut bytes = vec![0; slice.len];
        let mut filled = 0;
        while filled < bytes.len() {
            let at = slice.position + filled as u64;
            match slice.file.read_at(&mut bytes[filled..], at) {
                Ok(0) | Err(_) => return Err(ErrorCode::KafkaStorageError),
                Ok(len) => filled += len,
            }
        }
        Ok(bytes)
    }
}
