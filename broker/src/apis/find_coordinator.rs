//! FindCoordinator (10), 0-6.
//!
//! v1: key type, a text with each error. v3: flexible. v4: several keys. v6: share groups.

use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;
use protocol_compat::error::ErrorCode;
use protocol_compat::ids::{coordinator_partition, parse_topic_id};

use super::ctx::text;
use super::{Ctx, Handler};
use crate::node::{BrokerAddress, INTERNAL_TOPICS};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

pub struct FindCoordinator;

impl Handler for FindCoordinator {
    type Request = FindCoordinatorRequest;

    async fn handle(
        ctx: Ctx,
        version: i16,
        request: FindCoordinatorRequest,
    ) -> FindCoordinatorResponse {
        let mut response = FindCoordinatorResponse::default();
        if version >= 4 {
            let keys = request.coordinator_keys.into_iter();
            response.coordinators =
                keys.map(|key| coordinator(&ctx, version, request.key_type, key)).collect();
            return response;
        }
        let found = coordinator(&ctx, version, request.key_type, request.key);
        response.error_code = found.error_code;
        if version >= 1 {
            // Kafka puts a text here even when nothing is wrong; from v4 on it puts none at all.
            let code = ErrorCode::from_code(found.error_code).unwrap_or(ErrorCode::None);
            let message = if code == ErrorCode::None { "NONE" } else { code.message() };
            response.error_message = Some(text(message));
        }
        response.node_id = found.node_id;
        response.host = found.host;
        response.port = found.port;
        response
    }
}

fn coordinator(ctx: &Ctx, version: i16, key_type: i8, key: StrBytes) -> Coordinator {
    let mut answer = Coordinator::default();
    match find(ctx, version, key_type, &key) {
        Ok(at) => {
            answer.node_id = BrokerId(at.id);
            answer.host = text(&at.host);
            answer.port = i32::from(at.port);
            answer.error_message = Some(text(""));
        }
        Err(code) => {
            answer.node_id = BrokerId(-1);
            answer.port = -1;
            answer.error_code = code.code();
            let known = matches!(key_type, GROUP | TRANSACTION | SHARE);
            answer.error_message = Some(text(if known { "" } else { code.message() }));
        }
    }
    answer.key = key;
    answer
}

fn find(ctx: &Ctx, version: i16, key_type: i8, key: &str) -> Result<BrokerAddress, ErrorCode> {
    let topic = match key_type {
        GROUP => INTERNAL_TOPICS[0],
        TRANSACTION => INTERNAL_TOPICS[1],
        SHARE if version >= 6 && is_share_key(key) => INTERNAL_TOPICS[2],
        _ => return Err(ErrorCode::InvalidRequest),
    };
    let image = ctx.node.quorum.image();
    let Some(found) = image.topic(topic) else {
        ctx.node.create_missing(vec![topic.to_owned()]);
        return Err(ErrorCode::CoordinatorNotAvailable);
    };
    let partition = coordinator_partition(key, found.partition_count());
    let leader = found.partition(partition).and_then(|partition| partition.leader());
    let broker = leader.and_then(|leader| image.broker(leader)).filter(|broker| broker.is_active());
    let address = broker.and_then(|broker| ctx.node.address_of(broker, &ctx.conn));
    address.ok_or(ErrorCode::CoordinatorNotAvailable)
}

/// `groupId:topicId:partition` (KIP-932).
fn is_share_key(key: &str) -> bool {
    let mut parts = key.rsplitn(3, ':');
    let (partition, topic, group) = (parts.next(), parts.next(), parts.next());
    partition.is_some_and(|partition| partition.parse::<i32>().is_ok())
        && topic.is_some_and(|topic| parse_topic_id(topic).is_some())
        && group.is_some_and(|group| !group.is_empty())
}
