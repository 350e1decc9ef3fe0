//! DescribeConfigs (32), 1-4. v1: synonyms. v3: types and documentation. v4: flexible.

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kraft::record::ResourceKind;
use protocol_compat::error::ErrorCode;

use super::ctx::{opt_text, text};
use super::{Ctx, Handler};
use crate::config::{BROKER_LOGGER, Entry, Wanted};

pub struct DescribeConfigs;

impl Handler for DescribeConfigs {
    type Request = DescribeConfigsRequest;

    async fn handle(
        ctx: Ctx,
        version: i16,
        request: DescribeConfigsRequest,
    ) -> DescribeConfigsResponse {
        let docs = version >= 3 && request.include_documentation;
        let synonyms = request.include_synonyms;
        let resources = request.resources.iter();
        let is_known = |kind| kind == BROKER_LOGGER || ResourceKind::from_code(kind).is_some();
        if !resources.clone().all(|asked| is_known(asked.resource_type)) {
            // One kind that does not exist, and Kafka refuses the whole request.
            let refused = resources.map(refused);
            return DescribeConfigsResponse::default().with_results(refused.collect());
        }
        let results = resources.map(|asked| describe(&ctx, version, asked, synonyms, docs));
        DescribeConfigsResponse::default().with_results(results.collect())
    }
}

fn refused(asked: &DescribeConfigsResource) -> DescribeConfigsResult {
    DescribeConfigsResult::default()
        .with_error_code(ErrorCode::InvalidRequest.code())
        .with_error_message(Some(text("a resource type of this request does not exist")))
        .with_resource_type(asked.resource_type)
        .with_resource_name(asked.resource_name.clone())
}

fn describe(
    ctx: &Ctx,
    version: i16,
    asked: &DescribeConfigsResource,
    synonyms: bool,
    docs: bool,
) -> DescribeConfigsResult {
    let names: Vec<String> =
        asked.configuration_keys.iter().flatten().map(|name| name.to_string()).collect();
    let wanted = Wanted { names: &names, synonyms, docs };
    let (runtime, image) = (ctx.node.runtime(), ctx.node.quorum.image());
    let loggers = ctx.node.loggers.levels();
    let mut result = DescribeConfigsResult::default();
    result.resource_type = asked.resource_type;
    result.resource_name = asked.resource_name.clone();
    let name = asked.resource_name.as_str();
    match runtime.config.describe(asked.resource_type, name, &image, &loggers, wanted) {
        Ok(entries) => {
            result.error_message = Some(text(""));
            result.configs = entries.into_iter().map(|entry| config(version, entry)).collect();
        }
        Err(refusal) => {
            result.error_code = refusal.code.code();
            result.error_message = opt_text(refusal.message.as_deref());
        }
    }
    result
}

fn config(version: i16, entry: Entry) -> DescribeConfigsResourceResult {
    let mut out = DescribeConfigsResourceResult::default();
    out.name = text(&entry.name);
    out.value = opt_text(entry.value.as_deref());
    out.read_only = entry.read_only;
    out.config_source = entry.source.code();
    out.is_sensitive = entry.sensitive;
    let synonyms = entry.synonyms.into_iter().map(|synonym| {
        DescribeConfigsSynonym::default()
            .with_name(text(&synonym.name))
            .with_value(opt_text(synonym.value.as_deref()))
            .with_source(synonym.source.code())
    });
    out.synonyms = synonyms.collect();
    if version >= 3 {
        out.config_type = entry.kind.code();
        out.documentation = opt_text(entry.doc.as_deref());
    }
    out
}
