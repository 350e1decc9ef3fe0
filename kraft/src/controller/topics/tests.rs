//! CreateTopics and DeleteTopics, against what Apache Kafka 4.4.0 answers.

use super::super::fixtures::{Cluster, new_topic};
use super::super::request::{ControllerReply, ControllerRequest};
use super::*;

fn create(cluster: &mut Cluster, request: CreateTopics) -> PerName<CreatedTopic> {
    match cluster.ask(ControllerRequest::CreateTopics(request)) {
        ControllerReply::CreateTopics(reply) => reply,
        other => panic!("{other:?}"),
    }
}

fn create_one(cluster: &mut Cluster, topic: NewTopic) -> Result<CreatedTopic, Refusal> {
    create(cluster, CreateTopics { topics: vec![topic], validate_only: false }).remove(0).1
}

/// One broker (1), topic `there` and `a_b`. The topic must be refused with this code and text, with
/// and without `validate_only`, and nothing may change.
#[track_caller]
fn check(edit: impl FnOnce(&mut NewTopic), code: ErrorCode, message: &str) {
    let mut cluster = Cluster::new(1);
    cluster.create("there", 1, 1);
    cluster.create("a_b", 1, 1);
    let before = cluster.image().clone();
    let mut topic = new_topic("new");
    edit(&mut topic);
    for validate_only in [true, false] {
        let request = CreateTopics { topics: vec![topic.clone()], validate_only };
        let reply = create(&mut cluster, request);
        let want = Err(Refusal::new(code, message));
        assert_eq!(reply, [(topic.name.clone(), want)], "validate {validate_only}");
    }
    assert_eq!(*cluster.image(), before);
}

#[test]
fn bad_names() {
    let name = |name: &'static str| move |topic: &mut NewTopic| topic.name = name.into();
    use ErrorCode::{InvalidRequest, InvalidTopicException, TopicAlreadyExists};
    check(name("there"), TopicAlreadyExists, "Topic 'there' already exists.");
    check(name("a_b"), TopicAlreadyExists, "Topic 'a_b' already exists.");
    let text = "Topic 'a.b' collides with existing topic: a_b";
    check(name("a.b"), InvalidTopicException, text);
    let text = "Topic name is invalid: the empty string is not allowed";
    check(name(""), InvalidTopicException, text);
    let text = "Creation of internal topic __cluster_metadata is prohibited.";
    check(name("__cluster_metadata"), InvalidRequest, text);
}

#[test]
fn bad_counts() {
    let counts = |partitions, factor| {
        move |topic: &mut NewTopic| {
            (topic.partitions, topic.replication_factor) = (partitions, factor);
        }
    };
    use ErrorCode::{InvalidPartitions, InvalidReplicationFactor, PolicyViolation};
    let text = "Number of partitions was set to an invalid non-positive value.";
    for partitions in [0, -2, i32::MIN] {
        check(counts(partitions, 1), InvalidPartitions, text);
    }
    let text = "Replication factor must be larger than 0, or -1 to use the default value.";
    for factor in [0, -2] {
        check(counts(1, factor), InvalidReplicationFactor, text);
    }
    check(counts(0, 0), InvalidReplicationFactor, text);
    for factor in [2, i16::MAX] {
        let text = format!(
            "Unable to replicate the partition {factor} time(s): The target replication factor of \
             {factor} cannot be reached because only 1 broker(s) are registered or some brokers \
             have all their log directories cordoned."
        );
        check(counts(1, factor), InvalidReplicationFactor, &text);
    }
    let text = "Excessively large number of partitions per request.";
    check(counts(10_001, 1), PolicyViolation, text);
    check(counts(i32::MAX, 1), PolicyViolation, text);
    let text = "Unable to perform excessively large batch operation.";
    check(counts(10_000, 1), PolicyViolation, text);
}

#[test]
fn bad_assignments() {
    let assign = |assignments: &'static [(i32, &'static [i32])]| {
        move |topic: &mut NewTopic| {
            topic.assignments = assignments.iter().map(|(at, ids)| (*at, ids.to_vec())).collect();
        }
    };
    let case = |assignments, message| {
        check(assign(assignments), ErrorCode::InvalidReplicaAssignment, message);
    };
    let text = "partitions should be a consecutive 0-based integer sequence";
    case(&[(0, &[1]), (2, &[1])], text);
    case(&[(1, &[1])], text);
    case(&[(-1, &[1])], text);
    let text = "Found multiple manual partition assignments for partition 0";
    case(&[(0, &[1]), (0, &[1])], text);
    let text = "The manual partition assignment includes the broker 1 more than once.";
    case(&[(0, &[1, 1])], text);
    let text =
        "The manual partition assignment includes broker 4711, but no such broker is registered.";
    case(&[(0, &[4711])], text);
    case(&[(0, &[1]), (1, &[1, 4711])], text);
    let text =
        "The manual partition assignment includes broker -1, but no such broker is registered.";
    case(&[(0, &[-1])], text);
    let text = "The manual partition assignment includes an empty replica list.";
    case(&[(0, &[])], text);
    let both = |partitions, factor| {
        move |topic: &mut NewTopic| {
            topic.assignments = vec![(0, vec![1])];
            (topic.partitions, topic.replication_factor) = (partitions, factor);
        }
    };
    let given = "A manual partition assignment was specified, but";
    let text = format!("{given} replication factor was not set to -1.");
    check(both(1, 1), ErrorCode::InvalidRequest, &text);
    check(both(-1, 1), ErrorCode::InvalidRequest, &text);
    let text = format!("{given} numPartitions was not set to -1.");
    check(both(1, -1), ErrorCode::InvalidRequest, &text);
}

#[test]
fn uneven_assignments() {
    let mut cluster = Cluster::new(2);
    let mut topic = new_topic("t");
    topic.assignments = vec![(0, vec![1]), (1, vec![1, 2])];
    let text = "The manual partition assignment includes a partition with 2 replica(s), but this \
                is not consistent with previous partitions, which have 1 replica(s).";
    let want = Refusal::new(ErrorCode::InvalidReplicaAssignment, text);
    assert_eq!(create_one(&mut cluster, topic), Err(want));
}

#[test]
fn bad_configs() {
    let configs = |configs: &'static [(&'static str, Option<&'static str>)]| {
        move |topic: &mut NewTopic| {
            topic.configs =
                configs.iter().map(|(k, v)| (k.to_string(), v.map(str::to_string))).collect();
        }
    };
    let case = |list, message| check(configs(list), ErrorCode::InvalidConfig, message);
    let text = "Null value not supported for topic configs: retention.ms,x";
    case(&[("retention.ms", None), ("x", None), ("cleanup.policy", Some(""))], text);
    case(&[("no.such", Some("1"))], "Unknown topic config name: no.such");
    let long = "x".repeat(32_768);
    let mut cluster = Cluster::new(1);
    let mut topic = new_topic("t");
    topic.configs = vec![("cleanup.policy".into(), Some(long))];
    let refusal = create_one(&mut cluster, topic).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::InvalidConfig);
}

#[test]
fn a_good_topic() {
    let mut cluster = Cluster::with(3, |settings| {
        (settings.default_partitions, settings.default_replication_factor) = (4, 2);
    });
    let mut topic = new_topic("t");
    topic.configs = vec![
        ("retention.ms".into(), Some("1".into())),
        ("retention.ms".into(), Some("2".into())), // Given twice: no error, the last one counts.
    ];
    let created = create_one(&mut cluster, topic).unwrap();
    assert_eq!((created.partitions, created.replication_factor), (4, 2));
    let topic = cluster.image().topic("t").unwrap().clone();
    assert_eq!(cluster.image().topic_by_id(created.topic_id), Some(&topic));
    assert_eq!(topic.partition_count(), 4);
    let resource = ConfigResource::topic("t");
    assert_eq!(cluster.image().config(&resource, "retention.ms").map(|v| &**v), Some("2"));
    for partition in &topic.partitions {
        assert_eq!(partition.leader, partition.replicas[0]);
        assert_eq!(partition.isr, partition.replicas);
        assert_eq!((partition.leader_epoch, partition.partition_epoch), (0, 0));
        let home = Uuid::from_u128(1_000 + partition.replicas[0] as u128);
        assert_eq!(partition.directories[0], home); // A broker's only directory is known at once.
    }
}

#[test]
fn ids_are_random_uuids_without_a_dash_in_front() {
    let mut cluster = Cluster::new(1);
    for chance in [0, 1, u128::MAX, 62 << 122, (62 << 122) + 5] {
        let topic = new_topic(&format!("t{chance}"));
        let request = CreateTopics { topics: vec![topic], validate_only: false };
        let request = ControllerRequest::CreateTopics(request);
        // A source of chance that is stuck must not stop the world.
        let decision = cluster.controller.decide(0, &mut || chance, &request);
        cluster.commit(&decision.records);
        let ControllerReply::CreateTopics(reply) = decision.reply else { panic!() };
        let id = reply[0].1.as_ref().unwrap().topic_id;
        assert_eq!(id.get_version_num(), 4);
        assert_ne!(id.as_bytes()[0] >> 2, 62);
    }
    let mut stuck = || 7;
    for name in ["x", "y", "z"] {
        let request = CreateTopics { topics: vec![new_topic(name)], validate_only: false };
        let request = ControllerRequest::CreateTopics(request);
        let decision = cluster.controller.decide(0, &mut stuck, &request);
        cluster.commit(&decision.records);
    }
    assert_eq!(cluster.image().topic_count(), 8);
}

#[test]
fn several_topics_in_one_request() {
    let mut cluster = Cluster::new(1);
    let names = ["a", "b", "a", "c.d", "c_d", "bad name"];
    let topics = names.iter().map(|name| new_topic(name)).collect();
    let reply = create(&mut cluster, CreateTopics { topics, validate_only: false });
    let codes: Vec<(&str, ErrorCode)> = reply
        .iter()
        .map(|(name, result)| {
            (name.as_str(), result.as_ref().map_or_else(|r| r.code, |_| ErrorCode::None))
        })
        .collect();
    // `c.d` and `c_d` collide only with what was there before, as in Kafka.
    let want = [
        ("b", ErrorCode::None),
        ("c.d", ErrorCode::None),
        ("c_d", ErrorCode::None),
        ("bad name", ErrorCode::InvalidTopicException),
        ("a", ErrorCode::InvalidRequest),
    ];
    assert_eq!(codes, want);
    assert!(create(&mut cluster, CreateTopics::default()).is_empty());
}

#[test]
fn the_largest_topics() {
    let mut cluster = Cluster::new(1);
    let large = |name: &str, partitions| NewTopic { partitions, ..new_topic(name) };
    assert!(create_one(&mut cluster, large("t", 9_999)).is_ok());
    // Two topics that are too many together are both refused.
    let topics = vec![large("u", 5_000), large("v", 5_001)];
    for (_, result) in create(&mut cluster, CreateTopics { topics, validate_only: false }) {
        assert_eq!(result.unwrap_err().code, ErrorCode::PolicyViolation);
    }
    assert_eq!(cluster.image().topic_count(), 1);
}

#[test]
fn validation_changes_nothing() {
    let mut cluster = Cluster::new(1);
    let request = CreateTopics { topics: vec![new_topic("t")], validate_only: true };
    let reply = create(&mut cluster, request);
    let created = reply[0].1.as_ref().unwrap();
    assert_eq!((created.partitions, created.replication_factor), (1, 1));
    assert!(!created.topic_id.is_nil());
    assert_eq!(cluster.image().topic_count(), 0);
}

#[test]
fn fenced_brokers_hold_replicas_but_do_not_lead() {
    let mut cluster = Cluster::new(3);
    cluster.fence(1);
    cluster.create("t", 30, 3);
    for partition in &cluster.image().topic("t").unwrap().partitions {
        assert!(partition.replicas.contains(&1));
        assert!(!partition.isr.contains(&1) && partition.leader != 1);
    }
    let mut topic = new_topic("u");
    topic.assignments = vec![(0, vec![1])];
    let text = "All brokers specified in the manual partition assignment for partition 0 are \
                fenced or in controlled shutdown.";
    let want = Refusal::new(ErrorCode::InvalidReplicaAssignment, text);
    assert_eq!(create_one(&mut cluster, topic), Err(want));
    cluster.fence(2);
    cluster.fence(3);
    let text = "Unable to replicate the partition 1 time(s): All brokers are currently fenced or \
                have all their log directories cordoned.";
    let want = Refusal::new(ErrorCode::InvalidReplicationFactor, text);
    assert_eq!(create_one(&mut cluster, new_topic("u")), Err(want));
}

fn delete(cluster: &mut Cluster, topics: Vec<TopicRef>) -> Vec<DeletedTopic> {
    match cluster.ask(ControllerRequest::DeleteTopics(DeleteTopics { topics })) {
        ControllerReply::DeleteTopics(reply) => reply,
        other => panic!("{other:?}"),
    }
}

/// Topics `a` and `b`. A word is a topic name, `#name` the id of that topic, `#0` an unknown id,
/// `name+#name` both, `-` neither. An answer is written the same way, with the code.
#[track_caller]
fn check_delete(asked: &str, want: &str) {
    let mut cluster = Cluster::new(1);
    cluster.create("a", 1, 1);
    cluster.create("b", 1, 1);
    let image = cluster.image().clone();
    let unknown = Uuid::from_u128(99);
    let parse = |word: &str| {
        let (name, id) = match word.split_once('#') {
            None => (word, None),
            Some((name, id)) => (name.trim_end_matches('+'), Some(id)),
        };
        let id = id.map(|id| image.topic(id).map_or(unknown, |topic| topic.id));
        let name = Some(name).filter(|name| !name.is_empty() && *name != "-");
        TopicRef { name: name.map(str::to_string), id: id.unwrap_or_default() }
    };
    let reply = delete(&mut cluster, asked.split_whitespace().map(parse).collect());
    let show = |entry: &DeletedTopic| {
        let name = entry.name.clone().unwrap_or("-".to_string());
        let id = match image.topic_by_id(entry.id) {
            Some(topic) => format!("#{}", topic.name),
            None if entry.id == unknown => "#0".to_string(),
            None => String::new(),
        };
        let code = entry.result.as_ref().map_or_else(|refusal| refusal.code.code(), |()| 0);
        format!("{name}{id}={code}")
    };
    let got: Vec<String> = reply.iter().map(show).collect();
    assert_eq!(got.join(" "), want, "{asked}");
    for name in ["a", "b"] {
        let gone = got.contains(&format!("{name}#{name}=0"));
        assert_eq!(cluster.image().topic(name).is_none(), gone, "{name} after {asked}");
    }
}

#[test]
fn deleting_topics() {
    check_delete("", "");
    check_delete("a none", "a#a=0 none=3");
    check_delete("#a #b", "a#a=0 b#b=0");
    check_delete("#0", "-#0=100");
    check_delete("b b", "b=42");
    check_delete("none none", "none=42");
    check_delete("#a #a", "-#a=42");
    check_delete("a #a", "a#a=42");
    check_delete("#a a", "a#a=42");
    check_delete("a+#a", "a#a=42");
    check_delete("-", "-=42");
    check_delete("a!b", "a!b=3");
}

#[test]
fn deleting_takes_configs_along() {
    let mut cluster = Cluster::new(1);
    let topic = |value: &str| NewTopic {
        configs: vec![("retention.ms".into(), Some(value.into()))],
        ..new_topic("a")
    };
    cluster.create_topic(topic("5"));
    let first = cluster.image().topic("a").unwrap().id;
    delete(&mut cluster, vec![TopicRef { name: Some("a".into()), id: Uuid::nil() }]);
    assert_eq!(cluster.image().configs(&ConfigResource::topic("a")), None);
    cluster.create("a", 1, 1);
    assert_ne!(cluster.image().topic("a").unwrap().id, first);
    assert_eq!(cluster.image().configs(&ConfigResource::topic("a")), None);
}

#[test]
fn deletion_can_be_switched_off() {
    let mut cluster = Cluster::with(1, |settings| settings.delete_topics = false);
    cluster.create("a", 1, 1);
    let reply = delete(&mut cluster, vec![TopicRef { name: Some("a".into()), id: Uuid::nil() }]);
    let code = reply[0].result.as_ref().unwrap_err().code;
    assert_eq!(code, ErrorCode::TopicDeletionDisabled);
    assert!(cluster.image().topic("a").is_some());
}
