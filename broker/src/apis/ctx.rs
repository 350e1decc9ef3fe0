//! What a handler may reach: the node, the connection it serves, the header of its request.

use std::sync::Arc;

use protocol_compat::error::ErrorCode;

use super::Head;
use crate::groups::Name;
use crate::net::ConnInfo;
use crate::node::Node;
use crate::partition::Partition;

#[derive(Clone)]
pub struct Ctx {
    pub node: Arc<Node>,
    pub conn: Arc<ConnInfo>,
    pub head: Head,
}

impl Ctx {
    /// The client id, empty when the client gave none.
    pub fn client_id(&self) -> &str {
        self.head.client_id.as_deref().unwrap_or("")
    }

    /// The client's address as Kafka shows it: `/127.0.0.1`.
    pub fn client_host(&self) -> String {
        format!("/{}", self.conn.peer.ip().to_canonical())
    }

    /// The partition, if this node leads it.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER (also while it is being opened),
    /// KAFKA_STORAGE_ERROR.
    pub fn led_here(&self, topic: &str, index: i32) -> Result<Arc<Partition>, ErrorCode> {
        let partition = self.kept_here(topic, index)?;
        match partition.is_leader() {
            true => Ok(partition),
            false => Err(ErrorCode::NotLeaderOrFollower),
        }
    }

    /// The partition, if this node keeps a replica of it.
    ///
    /// # Errors
    /// The same.
    pub fn kept_here(&self, topic: &str, index: i32) -> Result<Arc<Partition>, ErrorCode> {
        let Some(partition) = self.node.partitions.partition(topic, index) else {
            let exists = self.node.quorum.image().partition(topic, index).is_some();
            return Err(match exists {
                true => ErrorCode::NotLeaderOrFollower,
                false => ErrorCode::UnknownTopicOrPartition,
            });
        };
        match partition.is_offline() {
            true => Err(ErrorCode::KafkaStorageError),
            false => Ok(partition),
        }
    }
}

/// A string of ours as the protocol crate wants it.
pub fn text(text: &str) -> kafka_protocol::protocol::StrBytes {
    kafka_protocol::protocol::StrBytes::from_string(text.to_owned())
}

/// The same for what may be missing.
pub fn opt_text(value: Option<&str>) -> Option<kafka_protocol::protocol::StrBytes> {
    value.map(text)
}

/// A name of the client's that outlives its request.
pub fn name(text: &str) -> Name {
    Name::from(text)
}

/// The same for what may be missing.
pub fn opt_name(text: Option<&kafka_protocol::protocol::StrBytes>) -> Option<Name> {
    text.map(|text| Name::from(text.as_str()))
}

/// Bytes of the client's that outlive its request; a slice would keep the whole frame.
pub fn owned(bytes: &bytes::Bytes) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(bytes)
}
