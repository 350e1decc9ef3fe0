//! The APIs, one file each, and what they have in common: the table, versions, frames.
//!
//! Produce and Fetch run on cursors of their own (`start`); every other API implements [`Handler`]
//! and is one line of [`TABLE`], from which dispatch, ApiVersions, metrics and the tests derive.

pub mod alter_configs;
pub mod alter_partition_reassignments;
pub mod alter_replica_log_dirs;
pub mod api_versions;
pub mod create_partitions;
pub mod create_topics;
pub mod ctx;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_producers;
pub mod describe_quorum;
pub mod describe_topic_partitions;
pub mod dispatch;
pub mod elect_leaders;
pub mod fetch;
pub mod find_coordinator;
pub mod heartbeat;
pub mod init_producer_id;
pub mod join_group;
pub mod leave_group;
pub mod list_config_resources;
pub mod list_groups;
pub mod list_offsets;
pub mod list_partition_reassignments;
pub mod metadata;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod sync_group;
pub mod table;
pub mod update_features;

use std::sync::Arc;
use std::task::Waker;

use protocol_compat::header::RequestHeader;

use crate::env::BoxFuture;
use crate::net::ConnInfo;
use crate::net::out::Reply;
use crate::node::Node;

pub use ctx::Ctx;
pub use dispatch::Handler;
pub use table::TABLE;

/// Requests of any API but Produce may be this large: what they hold is small, and what a decoder
/// makes of it is many times as large.
pub const ADMIN_FRAME_BYTES_MAX: usize = 8 << 20;

pub const PRODUCE: i16 = 0;
pub const FETCH: i16 = 1;

/// How a request ended.
pub enum Answer {
    Reply(Reply),
    /// Nothing is sent: Produce with acks=0.
    Silence,
    /// The connection ends, after the answers before it; the reason is for the log.
    Close(String),
}

/// What starting a request gave.
pub enum Started {
    Done(Answer),
    /// Records were written; the answer waits for the disk.
    Acks(Box<produce::PendingProduce>),
    Running(BoxFuture<Answer>),
}

impl Started {
    fn close(reason: impl Into<String>) -> Started {
        Started::Done(Answer::Close(reason.into()))
    }
}

/// The header of a request, without borrows.
#[derive(Clone)]
pub struct Head {
    pub key: i16,
    pub version: i16,
    pub correlation_id: i32,
    pub client_id: Option<Arc<str>>,
}

/// Starts the request in `frame`, which holds everything after the size. `waker` wakes the
/// connection's task.
pub fn start(node: &Arc<Node>, info: &Arc<ConnInfo>, frame: &mut [u8], waker: &Waker) -> Started {
    let header = match RequestHeader::parse(frame) {
        Ok(header) => header,
        Err(error) => return Started::close(format!("a request header is broken: {error}")),
    };
    let body_start = header.body_start;
    let head = Head {
        key: header.api_key,
        version: header.api_version,
        correlation_id: header.correlation_id,
        client_id: header.client_id.map(|id| Arc::from(&*id)),
    };
    let Some(row) = table::row(head.key) else {
        return Started::close(format!("API key {} is not served here", head.key));
    };
    if !row.decodes(head.version) {
        let Head { key, version, .. } = head;
        if key == table::API_VERSIONS {
            return Started::Done(Answer::Reply(dispatch::too_new(&head)));
        }
        return Started::close(format!("{} version {version} is not served here", row.name));
    }
    node.metrics.request(row.key);
    let ctx = Ctx { node: Arc::clone(node), conn: Arc::clone(info), head };
    match ctx.head.key {
        PRODUCE => produce::start(&ctx, &mut frame[body_start..], waker),
        FETCH => fetch::start(ctx, &frame[body_start..]),
        _ => (row.run)(ctx, bytes::Bytes::copy_from_slice(&frame[body_start..])),
    }
}

/// Refuses a frame that is too large for its API as soon as its first bytes are here.
///
/// # Errors
/// What is wrong with it.
pub fn check_size(filled: &[u8], len: usize) -> Result<(), String> {
    let Some(key) = filled.get(4..6) else {
        return Ok(());
    };
    let key = i16::from_be_bytes([key[0], key[1]]);
    if len <= ADMIN_FRAME_BYTES_MAX || key == PRODUCE {
        return Ok(());
    }
    Err(format!("a request of {len} bytes for API key {key}: at most {ADMIN_FRAME_BYTES_MAX}"))
}
