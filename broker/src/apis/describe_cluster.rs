//! DescribeCluster (60), 0-2. v1: brokers or controllers. v2: fenced brokers.

use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use protocol_compat::error::ErrorCode;

use super::ctx::{opt_text, text};
use super::metadata::{CLUSTER_OPERATIONS, operations};
use super::{Ctx, Handler};

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub struct DescribeCluster;

impl Handler for DescribeCluster {
    type Request = DescribeClusterRequest;

    async fn handle(
        ctx: Ctx,
        version: i16,
        request: DescribeClusterRequest,
    ) -> DescribeClusterResponse {
        let mut response = DescribeClusterResponse::default();
        let endpoint = if version >= 1 { request.endpoint_type } else { BROKERS };
        let refused = match endpoint {
            BROKERS => None,
            CONTROLLERS => Some(ErrorCode::MismatchedEndpointType),
            _ => Some(ErrorCode::UnsupportedEndpointType),
        };
        if let Some(code) = refused {
            response.error_code = code.code();
            response.error_message = Some(text(code.message()));
            response.endpoint_type = if version >= 1 { BROKERS } else { response.endpoint_type };
            return response;
        }
        let image = ctx.node.quorum.image();
        response.cluster_id = text(&ctx.node.cluster_id);
        response.controller_id = BrokerId(ctx.node.controller_id());
        let asked = request.include_cluster_authorized_operations;
        response.cluster_authorized_operations = operations(asked, CLUSTER_OPERATIONS);
        let fenced = version >= 2 && request.include_fenced_brokers;
        let brokers = image.brokers().filter(|broker| fenced || broker.is_active());
        let addresses = brokers.filter_map(|broker| ctx.node.address_of(broker, &ctx.conn));
        response.brokers = addresses
            .map(|at| {
                let mut broker = DescribeClusterBroker::default();
                broker.broker_id = BrokerId(at.id);
                broker.host = text(&at.host);
                broker.port = i32::from(at.port);
                broker.rack = opt_text(at.rack.as_deref());
                broker.is_fenced = version >= 2 && at.fenced;
                broker
            })
            .collect();
        response
    }
}
