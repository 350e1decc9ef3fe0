//! UpdateFeatures (57), 0-2. v1: kind of upgrade, dry run. v2: no result for each feature.

use kafka_protocol::messages::update_features_response::UpdatableFeatureResult;
use kafka_protocol::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};
use kraft::controller::{
    ControllerReply, ControllerRequest, FeatureUpdate, Refusal, UpdateFeatures as Ask,
};

use super::ctx::{opt_text, text};
use super::{Ctx, Handler};

/// Kinds of change, as the protocol numbers them (v0 only says whether it may go down).
const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;

pub struct UpdateFeatures;

impl Handler for UpdateFeatures {
    type Request = UpdateFeaturesRequest;

    async fn handle(
        ctx: Ctx,
        version: i16,
        request: UpdateFeaturesRequest,
    ) -> UpdateFeaturesResponse {
        let updates = request.feature_updates.iter().map(|update| {
            let of_v0 = if update.allow_downgrade { SAFE_DOWNGRADE } else { UPGRADE };
            FeatureUpdate {
                name: update.feature.to_string(),
                level: update.max_version_level,
                upgrade_type: if version == 0 { of_v0 } else { update.upgrade_type },
            }
        });
        let ask = Ask {
            updates: updates.collect(),
            validate_only: version >= 1 && request.validate_only,
        };
        let reply = ctx.node.quorum.submit(ControllerRequest::UpdateFeatures(ask)).await;
        let result = match reply {
            Ok(ControllerReply::UpdateFeatures(result)) => result,
            Ok(other) => unreachable!("the answer to an update is one: {other:?}"),
            Err(code) => Err(Refusal::bare(code)),
        };
        let mut response = UpdateFeaturesResponse::default();
        match result {
            Ok(()) => {
                response.error_message = None;
                if version <= 1 {
                    let updated = request.feature_updates.into_iter().map(|update| {
                        UpdatableFeatureResult::default()
                            .with_feature(update.feature)
                            .with_error_message(Some(text("NONE")))
                    });
                    response.results = updated.collect();
                }
            }
            Err(refusal) => {
                response.error_code = refusal.code.code();
                response.error_message = opt_text(refusal.message.as_deref());
            }
        }
        response
    }
}
