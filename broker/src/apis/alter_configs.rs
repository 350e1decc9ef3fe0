//! AlterConfigs (33), 0-2 and IncrementalAlterConfigs (44), 0-1.
//!
//! The former replaces all overrides of a resource and is deprecated; the latter changes single
//! keys. Broker resources are checked here first, since only the broker knows its file; loggers
//! never leave this broker. All else is the controller's.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse as Replaced;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};
use kraft::controller::{
    AlterConfigs as Replace, AlteredResource, ChangedResource, ConfigOp, ControllerReply,
    ControllerRequest, IncrementalAlterConfigs as Change, Refusal, ReplacedResource,
};
use protocol_compat::error::ErrorCode;

use super::ctx::{opt_text, text};
use super::{Ctx, Handler};
use crate::config::{BROKER_LOGGER, check_logger_change};

const BROKER: i8 = 4;

pub struct AlterConfigs;

impl Handler for AlterConfigs {
    type Request = AlterConfigsRequest;

    async fn handle(ctx: Ctx, _version: i16, request: AlterConfigsRequest) -> AlterConfigsResponse {
        let resources = request.resources.iter().map(|resource| ReplacedResource {
            kind: resource.resource_type,
            name: resource.resource_name.to_string(),
            configs: resource
                .configs
                .iter()
                .map(|config| {
                    (config.name.to_string(), config.value.as_ref().map(|v| v.to_string()))
                })
                .collect(),
        });
        let resources: Vec<ReplacedResource> = resources.collect();
        let keys: Vec<(i8, String)> =
            resources.iter().map(|resource| (resource.kind, resource.name.clone())).collect();
        let runtime = ctx.node.runtime();
        let check = |resource: &ReplacedResource| match resource.kind {
            BROKER => runtime.config.check_broker_replacement(&resource.name, &resource.configs),
            BROKER_LOGGER => {
                Err(Refusal::new(ErrorCode::InvalidRequest, "change loggers one by one"))
            }
            _ => Ok(()),
        };
        let (pass, refused) = sort(resources, &keys, check);
        let validate_only = request.validate_only;
        let ask = Replace { resources: pass, validate_only };
        let asked = ask.resources.iter().map(|one| (one.kind, one.name.clone())).collect();
        let reply = ctx.node.quorum.submit(ControllerRequest::AlterConfigs(ask)).await;
        let altered = match reply {
            Ok(ControllerReply::AlterConfigs(altered)) => altered,
            Ok(other) => unreachable!("the answer to a change is one: {other:?}"),
            Err(code) => not_asked(asked, code),
        };
        let responses = in_order(&keys, altered, refused).into_iter().map(|done| {
            let (code, message) = outcome(&done.result);
            Replaced::default()
                .with_error_code(code)
                .with_error_message(opt_text(message))
                .with_resource_type(done.kind)
                .with_resource_name(text(&done.name))
        });
        AlterConfigsResponse::default().with_responses(responses.collect())
    }
}

pub struct IncrementalAlterConfigs;

impl Handler for IncrementalAlterConfigs {
    type Request = IncrementalAlterConfigsRequest;

    async fn handle(
        ctx: Ctx,
        _version: i16,
        request: IncrementalAlterConfigsRequest,
    ) -> IncrementalAlterConfigsResponse {
        let resources = request.resources.iter().map(|resource| ChangedResource {
            kind: resource.resource_type,
            name: resource.resource_name.to_string(),
            ops: resource
                .configs
                .iter()
                .map(|config| ConfigOp {
                    key: config.name.to_string(),
                    op: config.config_operation,
                    value: config.value.as_ref().map(|value| value.to_string()),
                })
                .collect(),
        });
        let resources: Vec<ChangedResource> = resources.collect();
        let keys: Vec<(i8, String)> =
            resources.iter().map(|resource| (resource.kind, resource.name.clone())).collect();
        let validate_only = request.validate_only;
        let runtime = ctx.node.runtime();
        let check = |resource: &ChangedResource| match resource.kind {
            BROKER => runtime.config.check_broker_change(&resource.name, &resource.ops),
            _ => Ok(()),
        };
        let (mut pass, mut refused) = sort(resources, &keys, check);
        for logger in pass.extract_if(.., |resource| resource.kind == BROKER_LOGGER) {
            let result = change_loggers(&ctx, &logger, validate_only);
            refused.push(AlteredResource { kind: logger.kind, name: logger.name, result });
        }
        let ask = Change { resources: pass, validate_only };
        let asked = ask.resources.iter().map(|one| (one.kind, one.name.clone())).collect();
        let reply = ctx.node.quorum.submit(ControllerRequest::IncrementalAlterConfigs(ask)).await;
        let altered = match reply {
            Ok(ControllerReply::IncrementalAlterConfigs(altered)) => altered,
            Ok(other) => unreachable!("the answer to a change is one: {other:?}"),
            Err(code) => not_asked(asked, code),
        };
        let responses = in_order(&keys, altered, refused).into_iter().map(|done| {
            let (code, message) = outcome(&done.result);
            AlterConfigsResourceResponse::default()
                .with_error_code(code)
                .with_error_message(opt_text(message))
                .with_resource_type(done.kind)
                .with_resource_name(text(&done.name))
        });
        IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
    }
}

/// Levels of the log: this broker's alone, not kept.
fn change_loggers(ctx: &Ctx, change: &ChangedResource, validate_only: bool) -> Result<(), Refusal> {
    let levels = ctx.node.loggers.levels();
    let node_id = ctx.node.id;
    let changed = check_logger_change(&levels, node_id, &change.name, &change.ops)?;
    if !validate_only {
        ctx.node.loggers.change(changed);
    }
    Ok(())
}

/// Those that may go on to the controller, and those refused here. A resource named twice is left
/// to the controller, which refuses all of its kind.
fn sort<R: Resource>(
    resources: Vec<R>,
    keys: &[(i8, String)],
    check: impl Fn(&R) -> Result<(), Refusal>,
) -> (Vec<R>, Vec<AlteredResource>) {
    let mut seen = BTreeSet::new();
    let doubled: BTreeSet<&(i8, String)> = keys.iter().filter(|key| !seen.insert(*key)).collect();
    let (mut pass, mut refused) = (Vec::new(), Vec::new());
    for resource in resources {
        let (kind, name) = resource.key();
        let is_doubled = doubled.contains(&(kind, name.clone()));
        match check(&resource) {
            Err(refusal) if !is_doubled => {
                refused.push(AlteredResource { kind, name, result: Err(refusal) });
            }
            _ => pass.push(resource),
        }
    }
    (pass, refused)
}

trait Resource {
    fn key(&self) -> (i8, String);
}

impl Resource for ReplacedResource {
    fn key(&self) -> (i8, String) {
        (self.kind, self.name.clone())
    }
}

impl Resource for ChangedResource {
    fn key(&self) -> (i8, String) {
        (self.kind, self.name.clone())
    }
}

fn not_asked(asked: Vec<(i8, String)>, code: ErrorCode) -> Vec<AlteredResource> {
    let refused = asked.into_iter().map(|(kind, name)| AlteredResource {
        kind,
        name,
        result: Err(Refusal::bare(code)),
    });
    refused.collect()
}

/// One result for each resource, in the order of the request.
fn in_order(
    keys: &[(i8, String)],
    altered: Vec<AlteredResource>,
    refused: Vec<AlteredResource>,
) -> Vec<AlteredResource> {
    let mut results: Vec<AlteredResource> = altered.into_iter().chain(refused).collect();
    let places = keys.iter().enumerate().rev();
    let places: BTreeMap<(i8, &str), usize> =
        places.map(|(at, (kind, name))| ((*kind, name.as_str()), at)).collect();
    results.sort_by_key(|done| places.get(&(done.kind, done.name.as_str())).copied());
    results
}

fn outcome(result: &Result<(), Refusal>) -> (i16, Option<&str>) {
    match result {
        Ok(()) => (ErrorCode::None.code(), None),
        Err(refusal) => (refusal.code.code(), refusal.message.as_deref()),
    }
}
