//! AllocateProducerIds: blocks of producer ids for brokers to give out.

use protocol_compat::error::ErrorCode;

use super::request::{AllocateProducerIds, ProducerIdBlock, Refusal};
use super::view::View;
use crate::record::MetadataRecord;

/// How many producer ids a broker gets at a time (Kafka's `PRODUCER_ID_BLOCK_SIZE`).
pub const PRODUCER_ID_BLOCK: i32 = 1_000;

impl View<'_> {
    pub(super) fn allocate_producer_ids(
        self,
        request: &AllocateProducerIds,
    ) -> (Vec<MetadataRecord>, Result<ProducerIdBlock, Refusal>) {
        let AllocateProducerIds { broker_id, broker_epoch } = *request;
        if let Err(refusal) = self.check_broker_epoch(broker_id, broker_epoch) {
            return (Vec::new(), Err(refusal));
        }
        let first_id = self.image.next_producer_id();
        let Some(next_producer_id) = first_id.checked_add(i64::from(PRODUCER_ID_BLOCK)) else {
            let text = "Exhausted all producer ids.";
            return (Vec::new(), Err(Refusal::new(ErrorCode::UnknownServerError, text)));
        };
        let record = MetadataRecord::ProducerIds { broker_id, broker_epoch, next_producer_id };
        (vec![record], Ok(ProducerIdBlock { first_id, len: PRODUCER_ID_BLOCK }))
    }
}
