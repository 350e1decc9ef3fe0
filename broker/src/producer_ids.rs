//! Producer ids: handed out one by one from a block that the controller granted.

use kraft::controller::{AllocateProducerIds, ControllerReply, ControllerRequest};
use protocol_compat::error::ErrorCode;
use tokio::sync::Mutex;

use crate::quorum::Quorum;

#[derive(Default)]
pub struct ProducerIds {
    block: Mutex<Block>,
}

#[derive(Default)]
struct Block {
    next_id: i64,
    end_id: i64,
}

impl ProducerIds {
    /// An id that nobody had before.
    ///
    /// # Errors
    /// The controller could not be asked, or refused.
    pub async fn next(&self, broker_id: i32, quorum: &Quorum) -> Result<i64, ErrorCode> {
        // The lock is held while the controller is asked, so that one block is fetched for all.
        let mut block = self.block.lock().await;
        if block.next_id == block.end_id {
            let broker_epoch = quorum.image().broker(broker_id).map_or(-1, |broker| broker.epoch);
            let request = AllocateProducerIds { broker_id, broker_epoch };
            let reply = quorum.submit(ControllerRequest::AllocateProducerIds(request)).await?;
            let ControllerReply::AllocateProducerIds(granted) = reply else {
                return Err(ErrorCode::UnknownServerError);
            };
            let granted = granted.map_err(|refusal| refusal.code)?;
            *block = Block {
                next_id: granted.first_id,
                end_id: granted.first_id + i64::from(granted.len),
            };
        }
        let id = block.next_id;
        block.next_id += 1;
        Ok(id)
    }
}
