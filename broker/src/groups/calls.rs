//! The requests as plain async calls, one per API, for the handlers.

use protocol_compat::error::ErrorCode;

use super::Groups;
use super::messages::*;

/// One call: asks, and takes the answer of the variant of the same name.
macro_rules! call {
    ($(#[$doc:meta])* $name:ident($request:ty as $variant:ident) -> $reply:ty) => {
        $(#[$doc])*
        pub async fn $name(&self, now_ms: i64, request: $request) -> $reply {
            let group = request.group.clone();
            match self.handle(now_ms, &group, Input::$variant(request)).await {
                Reply::$variant(reply) => reply,
                other => unreachable!("the answer is of another kind: {other:?}"),
            }
        }
    };
}

impl Groups {
    call! {
        /// JoinGroup. Answers when the join phase is over.
        join(JoinRequest as Join) -> JoinReply
    }
    call! {
        /// SyncGroup. Answers when the leader has assigned.
        sync(SyncRequest as Sync) -> SyncReply
    }
    call! {
        /// Heartbeat.
        heartbeat(HeartbeatRequest as Heartbeat) -> ErrorCode
    }
    call! {
        /// LeaveGroup.
        leave(LeaveRequest as Leave) -> LeaveReply
    }
    call! {
        /// OffsetCommit.
        commit(CommitRequest as Commit) -> PerPartition
    }
    call! {
        /// OffsetFetch of one group.
        fetch_offsets(FetchRequest as FetchOffsets) -> FetchReply
    }
    call! {
        /// OffsetDelete.
        delete_offsets(OffsetDeleteRequest as DeleteOffsets) -> PerPartition
    }

    /// DescribeGroups of one group.
    pub async fn describe(&self, now_ms: i64, group: Name) -> Description {
        match self.handle(now_ms, &group.clone(), Input::Describe(group)).await {
            Reply::Describe(reply) => reply,
            other => unreachable!("the answer is of another kind: {other:?}"),
        }
    }

    /// DeleteGroups of one group.
    pub async fn delete_group(&self, now_ms: i64, group: Name) -> ErrorCode {
        match self.handle(now_ms, &group.clone(), Input::DeleteGroup(group)).await {
            Reply::DeleteGroup(error) => error,
            other => unreachable!("the answer is of another kind: {other:?}"),
        }
    }
}
