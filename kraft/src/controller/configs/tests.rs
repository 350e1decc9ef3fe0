//! AlterConfigs and IncrementalAlterConfigs against what Apache Kafka 4.4.0 answers.

use super::super::fixtures::Cluster;
use super::super::request::{ControllerReply, ControllerRequest};
use super::*;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const GROUP: i8 = 32;

/// `key=value` sets, `key-` deletes, `key+=value` appends, `key-=value` subtracts, `key=?` sets
/// null.
fn op(text: &str) -> ConfigOp {
    let (key, op, value) = if let Some((key, value)) = text.split_once("+=") {
        (key, 2, Some(value))
    } else if let Some((key, value)) = text.split_once("-=") {
        (key, 3, Some(value))
    } else if let Some((key, value)) = text.split_once('=') {
        (key, 0, Some(value).filter(|value| *value != "?"))
    } else {
        (text.trim_end_matches('-'), 1, None)
    };
    ConfigOp { key: key.to_string(), op, value: value.map(str::to_string) }
}

fn resource_of(kind: i8, name: &str, ops: &[&str]) -> ChangedResource {
    ChangedResource { kind, name: name.to_string(), ops: ops.iter().map(|text| op(text)).collect() }
}

fn change(
    cluster: &mut Cluster,
    resources: Vec<ChangedResource>,
    validate_only: bool,
) -> Vec<Result<(), Refusal>> {
    let request = IncrementalAlterConfigs { resources, validate_only };
    match cluster.ask(ControllerRequest::IncrementalAlterConfigs(request)) {
        ControllerReply::IncrementalAlterConfigs(reply) => {
            reply.into_iter().map(|resource| resource.result).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn overrides(cluster: &Cluster, kind: i8, name: &str) -> String {
    let resource = ConfigResource::new(ResourceKind::from_code(kind).unwrap(), name);
    let configs = cluster.image().configs(&resource).cloned().unwrap_or_default();
    let list: Vec<String> = configs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    list.join(" ")
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::new(1);
    cluster.create("t", 1, 1);
    cluster
}

/// One step after the other on topic `t`.
#[track_caller]
fn check_step(cluster: &mut Cluster, ops: &[&str], want: &str) {
    assert_eq!(change(cluster, vec![resource_of(TOPIC, "t", ops)], false), [Ok(())], "{ops:?}");
    assert_eq!(overrides(cluster, TOPIC, "t"), want, "{ops:?}");
}

#[test]
fn set_delete_append_subtract() {
    let c = &mut cluster();
    check_step(c, &["retention.ms=5"], "retention.ms=5");
    check_step(c, &["retention.ms-"], "");
    check_step(c, &["retention.ms-"], "");
    check_step(c, &["no.such-"], "");
    check_step(c, &["cleanup.policy+=compact"], "cleanup.policy=delete,compact");
    check_step(c, &["cleanup.policy+=compact"], "cleanup.policy=delete,compact");
    check_step(c, &["cleanup.policy-=delete"], "cleanup.policy=compact");
    check_step(c, &["cleanup.policy-=delete"], "cleanup.policy=compact");
    check_step(c, &["cleanup.policy-=compact"], "cleanup.policy=");
    check_step(c, &["cleanup.policy+=compact,delete"], "cleanup.policy=compact,delete");
    check_step(c, &["cleanup.policy-", "retention.ms=7"], "retention.ms=7");
    check_step(c, &[], "retention.ms=7");
}

/// A change of a resource that must be refused and must change nothing.
#[track_caller]
fn check_refused(resource: ChangedResource, code: ErrorCode, message: &str) {
    let mut cluster = cluster();
    change(&mut cluster, vec![resource_of(TOPIC, "t", &["retention.ms=1"])], false);
    let before = cluster.image().clone();
    for validate_only in [true, false] {
        let result = change(&mut cluster, vec![resource.clone()], validate_only);
        assert_eq!(result, [Err(Refusal::new(code, message))], "{resource:?}");
    }
    assert_eq!(*cluster.image(), before);
}

#[test]
fn refused_changes() {
    use ErrorCode::{
        InvalidConfig, InvalidRequest, InvalidTopicException, UnknownTopicOrPartition,
    };
    let topic = |ops: &[&str]| resource_of(TOPIC, "t", ops);
    let text = "Can't APPEND to key retention.ms because its type is not LIST.";
    check_refused(topic(&["retention.ms+=5"]), InvalidConfig, text);
    let text = "Can't SUBTRACT to key retention.ms because its type is not LIST.";
    check_refused(topic(&["retention.ms-=5"]), InvalidConfig, text);
    let text = "Null value not supported for : retention.ms";
    check_refused(topic(&["retention.ms=?"]), InvalidRequest, text);
    let text = "Error due to duplicate config keys";
    check_refused(topic(&["retention.ms=1", "retention.ms=2"]), InvalidRequest, text);
    check_refused(topic(&["retention.ms=?", "retention.ms=2"]), InvalidRequest, text);
    let text = "Unknown topic config name: no.such";
    check_refused(topic(&["no.such=1"]), InvalidConfig, text);
    // One bad key fails the resource whole.
    let text = "Invalid value x for configuration retention.ms";
    check_refused(topic(&["cleanup.policy=compact", "retention.ms=x"]), InvalidConfig, text);
    let missing = resource_of(TOPIC, "none", &["retention.ms=1"]);
    check_refused(missing, UnknownTopicOrPartition, "The topic 'none' does not exist.");
    let empty = resource_of(TOPIC, "", &["retention.ms=1"]);
    check_refused(empty, InvalidRequest, "Default topic resources are not allowed.");
    let empty = resource_of(GROUP, "", &["retention.ms=1"]);
    check_refused(empty, InvalidRequest, "Default group resources are not allowed.");
    let text = "Topic name is invalid: 'a b' contains one or more characters other than ASCII \
                alphanumerics, '.', '_' and '-'";
    check_refused(resource_of(TOPIC, "a b", &[]), InvalidTopicException, text);
    check_refused(resource_of(5, "x", &["a=1"]), InvalidRequest, "Unknown resource type 5");
    let text = "Node id must be an integer, but it is: abc";
    check_refused(resource_of(BROKER, "abc", &["a=1"]), InvalidRequest, text);
    for number in [4, -1] {
        let mut odd = topic(&["retention.ms=1"]);
        odd.ops[0].op = number;
        let text = format!("Unknown config operation {number} for retention.ms");
        check_refused(odd, InvalidRequest, &text);
    }
    let text = "The configuration value cannot be added because it exceeds the maximum value size \
                of 32767 bytes.";
    let long = format!("cleanup.policy={}", "x".repeat(32_768));
    check_refused(topic(&[&long]), InvalidConfig, text);
}

#[test]
fn resources_stand_alone() {
    let mut cluster = cluster();
    let good = resource_of(TOPIC, "t", &["retention.ms=1"]);
    let bad = resource_of(TOPIC, "none", &["retention.ms=1"]);
    let group = resource_of(GROUP, "g", &["retention.ms=3"]);
    let results = change(&mut cluster, vec![bad, good.clone(), group], false);
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(overrides(&cluster, TOPIC, "t"), "retention.ms=1");
    assert_eq!(overrides(&cluster, GROUP, "g"), "retention.ms=3");
    let text = "Each resource must appear at most once.";
    let twice = Err(Refusal::new(ErrorCode::InvalidRequest, text));
    let results = change(&mut cluster, vec![good.clone(), good], false);
    assert_eq!(results, [twice.clone(), twice]);
}

#[test]
fn brokers_take_any_key_and_hear_of_repeats() {
    let mut cluster = cluster();
    let own = resource_of(BROKER, "1", &["no.such.key=5"]);
    assert_eq!(change(&mut cluster, vec![own.clone()], false), [Ok(())]);
    assert_eq!(overrides(&cluster, BROKER, "1"), "no.such.key=5");
    let request = IncrementalAlterConfigs { resources: vec![own], validate_only: false };
    let decision = cluster.decide(&ControllerRequest::IncrementalAlterConfigs(request));
    assert_eq!(decision.records.len(), 1, "the same value again is a wish to reload");
}

#[test]
fn min_isr_is_one_for_all_while_elr_is_on() {
    let mut cluster = cluster();
    assert_eq!(overrides(&cluster, BROKER, ""), "min.insync.replicas=1");
    let refused = |cluster: &mut Cluster, name, op: &str| {
        change(cluster, vec![resource_of(BROKER, name, &[op])], false).remove(0).unwrap_err()
    };
    let text = "Broker-level min.insync.replicas cannot be altered while ELR is enabled.";
    let want = Refusal::new(ErrorCode::InvalidConfig, text);
    assert_eq!(refused(&mut cluster, "1", "min.insync.replicas=2"), want);
    let text = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.";
    let want = Refusal::new(ErrorCode::InvalidConfig, text);
    assert_eq!(refused(&mut cluster, "", "min.insync.replicas-"), want);
    let set = resource_of(BROKER, "", &["min.insync.replicas=2"]);
    assert_eq!(change(&mut cluster, vec![set], false), [Ok(())]);
    assert_eq!(overrides(&cluster, BROKER, ""), "min.insync.replicas=2");
}

#[test]
fn another_min_isr_voids_the_elr() {
    let mut cluster = Cluster::new(3);
    cluster.create_on("t", "1 2 3/1 2 3");
    cluster.set(ResourceKind::Topic, "t", MIN_ISR, "3");
    cluster.fence(2);
    assert_eq!(cluster.show("t", 0), "1 2 3 leader 1@0 isr 1 3 elr 2");
    cluster.set(ResourceKind::Topic, "t", "retention.ms", "3");
    assert_eq!(cluster.show("t", 0), "1 2 3 leader 1@0 isr 1 3 elr 2");
    cluster.set(ResourceKind::Topic, "t", MIN_ISR, "2");
    assert_eq!(cluster.show("t", 0), "1 2 3 leader 1@0 isr 1 3");
    // With nobody in sync no high watermark moves, and the eligible must stay.
    for broker in [3, 1] {
        cluster.fence(broker);
    }
    let want = "1 2 3 leader -1@2 isr - elr 1 3 last 1";
    assert_eq!(cluster.show("t", 1).replace("@1", "@2"), want);
    cluster.set(ResourceKind::Topic, "t", MIN_ISR, "1");
    assert_eq!(cluster.show("t", 1).replace("@1", "@2"), want);
}

fn replace(cluster: &mut Cluster, configs: &[(&str, Option<&str>)], validate: bool) -> String {
    let configs = configs.iter().map(|(k, v)| (k.to_string(), v.map(str::to_string))).collect();
    let resource = ReplacedResource { kind: TOPIC, name: "t".into(), configs };
    let request = AlterConfigs { resources: vec![resource], validate_only: validate };
    match cluster.ask(ControllerRequest::AlterConfigs(request)) {
        ControllerReply::AlterConfigs(reply) => match &reply[0].result {
            Ok(()) => overrides(cluster, TOPIC, "t"),
            Err(refusal) => format!("{} {:?}", refusal.code.code(), refusal.message),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn legacy_alter_replaces_the_whole_set() {
    let c = &mut cluster();
    let both = [("retention.ms", Some("1")), ("cleanup.policy", Some("compact"))];
    assert_eq!(replace(c, &both, false), "cleanup.policy=compact retention.ms=1");
    let one = [("retention.ms", Some("2"))];
    assert_eq!(replace(c, &one, true), "cleanup.policy=compact retention.ms=1");
    assert_eq!(replace(c, &one, false), "retention.ms=2");
    let bad = [("retention.ms", Some("3")), ("no.such", Some("1"))];
    assert_eq!(replace(c, &bad, false), "40 Some(\"Unknown topic config name: no.such\")");
    let null = [("retention.ms", None)];
    let want = "42 Some(\"Null value not supported for : retention.ms\")";
    assert_eq!(replace(c, &null, false), want);
    let twice = [("retention.ms", Some("1")), ("retention.ms", Some("2"))];
    assert_eq!(replace(c, &twice, false), "42 Some(\"Error due to duplicate config keys\")");
    assert_eq!(overrides(c, TOPIC, "t"), "retention.ms=2");
    assert_eq!(replace(c, &[], false), "");
}
