//! InitProducerId (22), 0-5 (6 is unstable in Kafka 4.4).
//!
//! v2: flexible. v3: an id and epoch to go on with. v4: PRODUCER_FENCED.
//!
//! Ids of idempotent producers come from the block that the controller granted to this node. There
//! are no transactions yet: a transactional id has no coordinator.

use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};
use protocol_compat::error::ErrorCode;

use super::{Ctx, Handler};

/// No producer id, no epoch.
const NONE: i64 = -1;

pub struct InitProducerId;

impl Handler for InitProducerId {
    type Request = InitProducerIdRequest;

    async fn handle(
        ctx: Ctx,
        version: i16,
        request: InitProducerIdRequest,
    ) -> InitProducerIdResponse {
        let node = &ctx.node;
        // An id to go on with comes with its epoch, or neither does.
        let is_halved =
            (request.producer_id.0 == NONE) != (i64::from(request.producer_epoch) == NONE);
        let given = match &request.transactional_id {
            _ if version >= 3 && is_halved => Err(ErrorCode::InvalidRequest),
            None => node.producer_ids.next(node.id, &node.quorum).await,
            Some(id) if id.is_empty() => Err(ErrorCode::InvalidRequest),
            Some(_) => Err(ErrorCode::CoordinatorNotAvailable),
        };
        let mut response = InitProducerIdResponse::default();
        match given {
            Ok(id) => response.producer_id = ProducerId(id),
            Err(code) => {
                response.error_code = code.code();
                response.producer_id = ProducerId(NONE);
                response.producer_epoch = -1;
            }
        }
        response
    }
}
