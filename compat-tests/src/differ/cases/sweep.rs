//! Every API that a broker's listener serves: a request that is well formed, made from the field
//! table, at every version; versions that do not exist; bodies cut short.

use serde_json::{Value, json};

use crate::differ::codec::{self, Header};
use crate::differ::context::T;
use crate::differ::run::Cases;
use crate::differ::table::{self, Api};

/// What keeps a request with defaults from changing anything, from waiting, or from an answer
/// that depends on what else is there. Other APIs take the defaults of all fields.
fn body(api: &str) -> Value {
    match api {
        "AddPartitionsToTxn" => json!({"Transactions": [{"TransactionalId": "none-such"}]}),
        "AddRaftVoter" | "RemoveRaftVoter" => json!({"ClusterId": "none-such", "VoterId": 9999}),
        "AlterShareGroupOffsets" | "DeleteShareGroupOffsets" => json!({"GroupId": "none-such"}),
        "ApiVersions" => json!({"ClientSoftwareName": "differ", "ClientSoftwareVersion": "1"}),
        "ConsumerGroupHeartbeat" | "ShareGroupHeartbeat" | "StreamsGroupHeartbeat" => {
            json!({"GroupId": "none-such", "MemberId": "m", "MemberEpoch": 5})
        }
        "ConsumerGroupDescribe" | "ShareGroupDescribe" | "StreamsGroupDescribe" => {
            json!({"GroupIds": ["none-such"]})
        }
        "CreateDelegationToken" => json!({"MaxLifetimeMs": 1000}),
        "DeleteGroups" => json!({"GroupsNames": ["none-such"]}),
        "DescribeAcls" => json!({
            "ResourceTypeFilter": 2, "ResourceNameFilter": "none-such", "PatternTypeFilter": 3,
            "Operation": 1, "PermissionType": 1,
        }),
        "DescribeClientQuotas" => {
            json!({"Components": [{"EntityType": "user", "MatchType": 0, "Match": "none-such"}]})
        }
        "DescribeGroups" => json!({"Groups": ["none-such"]}),
        "DescribeLogDirs" | "ListPartitionReassignments" | "Metadata" => json!({"Topics": []}),
        "DescribeShareGroupOffsets" => json!({"Groups": [{"GroupId": "none-such", "Topics": []}]}),
        "DescribeTopicPartitions" => json!({"Topics": [{"Name": "none-such"}]}),
        "DescribeTransactions" => json!({"TransactionalIds": ["none-such"]}),
        "DescribeUserScramCredentials" => json!({"Users": [{"Name": "none-such"}]}),
        "ElectLeaders" => json!({"TopicPartitions": [], "TimeoutMs": 1000}),
        "FindCoordinator" => json!({"Key": "x", "CoordinatorKeys": ["x"]}),
        "InitProducerId" => json!({"TransactionalId": "", "TransactionTimeoutMs": 1000}),
        "JoinGroup" => json!({"GroupId": "", "SessionTimeoutMs": 10000}),
        "ListConfigResources" => json!({"ResourceTypes": [16]}),
        "ListGroups" => json!({"StatesFilter": ["Dead"]}),
        "ListTransactions" => json!({"StateFilters": ["Dead"], "ProducerIdFilters": [987654321]}),
        "OffsetFetch" => json!({
            "GroupId": "none-such", "Topics": [],
            "Groups": [{"GroupId": "none-such", "Topics": []}],
        }),
        "Produce" => json!({"Acks": 1, "TimeoutMs": 1000}),
        "PushTelemetry" => json!({"Metrics": "x"}),
        "ShareFetch" | "ShareAcknowledge" => {
            json!({"GroupId": "none-such", "MemberId": "m", "ShareSessionEpoch": 5})
        }
        "StreamsGroupTopologyDescriptionUpdate" => {
            json!({"GroupId": "none-such", "MemberId": "m", "TopologyDescription": {}})
        }
        "UnregisterBroker" => json!({"BrokerId": 9999}),
        "UnregisterController" => json!({"ControllerId": 9999}),
        _ => json!({}),
    }
}

/// Parts of answers that depend on what else the broker holds, or on its age.
fn blur(api: &str, answer: &mut Value) {
    let fields: &[&str] = match api {
        "DescribeQuorum" => &["LeaderEpoch", "HighWatermark", "CurrentVoters", "Observers"],
        "ListConfigResources" => &["ConfigResources"],
        "ListGroups" => &["Groups"],
        "Metadata" => &["Topics"],
        "GetTelemetrySubscriptions" => &["SubscriptionId"],
        _ => &[],
    };
    for field in fields {
        if let Some(value) = answer.get_mut(*field) {
            *value = json!("(not compared)");
        }
    }
}

pub fn add(cases: &mut Cases) {
    for api in table::apis().values().filter(|api| api.on_broker) {
        for version in api.stable() {
            let name = format!("sweep/{:02} {} v{version}", api.key, api.name);
            cases.add_needing(&api.name, name, move |t| {
                let mut answer = t.ask(&api.name, version, body(&api.name));
                blur(&api.name, &mut answer);
                t.see("answer", answer);
                Ok(())
            });
        }
        // ApiVersions answers to any version; it has cases of its own.
        if api.name != "ApiVersions" {
            let name = format!("unsupported/{:02} {}", api.key, api.name);
            cases.add_needing(&api.name, name, move |t| {
                unsupported(t, api);
                Ok(())
            });
        }
        let name = format!("truncated/{:02} {}", api.key, api.name);
        cases.add_needing(&api.name, name, move |t| {
            truncated(t, api);
            Ok(())
        });
    }
}

const HEADER: Header = Header { correlation: 3, client_id: Some("x"), tags: &Value::Null };

/// The frame to a connection of its own: closed, silent or answered.
fn fate(t: &T, frame: &[u8]) -> Value {
    let mut conn = t.conn().patient(3000);
    match conn.exchange(frame) {
        Ok(_) => json!("answered"),
        Err(failure) => failure.value(),
    }
}

fn unsupported(t: &mut T, api: &Api) {
    let (low, high) = (*api.stable().start(), *api.stable().end());
    for (version, near) in [(low - 1, low), (high + 1, high), (i16::MAX, high), (-1, low)] {
        let flexible = api.request.flexible.holds(near);
        let mut frame = codec::encode_header(api.key, version, flexible, &HEADER);
        frame.extend(codec::encode_body(&api.request, near, &body(&api.name)));
        let fate = fate(t, &frame);
        t.see(format!("v{version}"), fate);
    }
}

fn truncated(t: &mut T, api: &Api) {
    for version in [*api.stable().start(), *api.stable().end()] {
        let frame = codec::encode_request(api, version, &HEADER, &body(&api.name));
        let flexible = api.request.flexible.holds(version);
        let head = codec::encode_header(api.key, version, flexible, &HEADER).len();
        let half = head + (frame.len() - head) / 2;
        for (label, cut) in [("by a byte", frame.len() - 1), ("in half", half), ("whole", head)] {
            if head <= cut && cut < frame.len() {
                let fate = fate(t, &frame[..cut]);
                t.see(format!("v{version} cut {label}"), fate);
            }
        }
    }
}
