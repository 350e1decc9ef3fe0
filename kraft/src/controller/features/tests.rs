//! UpdateFeatures against what Apache Kafka 4.4.0 answers.

use super::super::fixtures::Cluster;
use super::super::request::{ControllerReply, ControllerRequest};
use super::*;

fn update(cluster: &mut Cluster, updates: &[(&str, i16, i8)], validate_only: bool) -> String {
    let updates = updates
        .iter()
        .map(|(name, level, upgrade_type)| FeatureUpdate {
            name: name.to_string(),
            level: *level,
            upgrade_type: *upgrade_type,
        })
        .collect();
    let request = UpdateFeatures { updates, validate_only };
    match cluster.ask(ControllerRequest::UpdateFeatures(request)) {
        ControllerReply::UpdateFeatures(Ok(())) => "ok".to_string(),
        ControllerReply::UpdateFeatures(Err(refusal)) => {
            assert_eq!(refusal.code, ErrorCode::InvalidUpdateVersion);
            let text = refusal.message.unwrap();
            let head = "The update failed for all features since the following feature had an \
                        error: ";
            text.strip_prefix(head).unwrap().to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check(name: &str, level: i16, upgrade_type: i8, want: &str) {
    let mut cluster = Cluster::with(1, |settings| settings.node_id = 0);
    let before = cluster.image().clone();
    let got = update(&mut cluster, &[(name, level, upgrade_type)], false);
    let invalid = format!("Invalid update version {level} for feature {name}. ");
    assert_eq!(got.strip_prefix(&invalid).unwrap_or(&got), want, "{name} {level}");
    assert_eq!(*cluster.image() == before, want != "ok" || level == before.feature(name));
}

#[test]
fn what_kafka_says() {
    check("no.such", 1, 1, "Local controller 0 does not support this feature.");
    check("metadata.version", 999, 1, "Local controller 0 only supports versions 7-33");
    check("metadata.version", 1, 1, "Local controller 0 only supports versions 7-33");
    check("group.version", 9, 1, "Local controller 0 only supports versions 0-1");
    check("group.version", -1, 1, "A feature version cannot be less than 0.");
    let text = "Can't downgrade the version of this feature without setting the upgrade type to \
                either safe or unsafe downgrade.";
    check("metadata.version", 20, 1, text);
    let text = "Unsupported metadata.version downgrade from 33 to 20. Refusing to perform the \
                requested downgrade because it might delete metadata information.";
    check("metadata.version", 20, 2, text);
    check("metadata.version", 32, 2, &text.replace("20", "32"));
    let text = "Unsupported metadata.version downgrade from 33 to 20. Unsafe metadata downgrade is \
                not supported in this version.";
    check("metadata.version", 20, 3, text);
    let text = "The controller does not support the given upgrade type.";
    check("metadata.version", 20, 9, text);
    check("group.version", 0, 2, "ok");
    check("group.version", 1, 1, "ok");
    check("kraft.version", 0, 2, "Can't downgrade the version of this feature.");
    check("transaction.version", 1, 2, "ok");
}

#[test]
fn all_or_nothing() {
    let mut cluster = Cluster::new(1);
    let before = cluster.image().clone();
    let got = update(&mut cluster, &[("group.version", 0, 2), ("no.such", 1, 1)], false);
    assert!(got.contains("no.such"), "{got}");
    assert_eq!(update(&mut cluster, &[("group.version", 0, 2)], true), "ok");
    assert_eq!(*cluster.image(), before);
    let twice = [("group.version", 1, 1), ("group.version", 0, 2)];
    assert_eq!(update(&mut cluster, &twice, false), "ok");
    assert_eq!(cluster.image().feature("group.version"), 0);
    let text = "Invalid update version 1 for feature group.version. Can't downgrade to a newer \
                version.";
    assert_eq!(update(&mut cluster, &[("group.version", 1, 2)], false), text);
    assert_eq!(update(&mut cluster, &[("group.version", 1, 1)], false), "ok");
    assert_eq!(cluster.image().feature("group.version"), 1);
}

#[test]
fn only_what_is_implemented_everywhere() {
    let mut cluster = Cluster::with(1, |settings| {
        settings.features.remove("share.version");
        settings.features.insert("group.version".into(), (0, 1));
    });
    assert_eq!(cluster.image().feature("share.version"), 0);
    let got = update(&mut cluster, &[("share.version", 1, 1)], false);
    assert!(got.ends_with("Local controller 9 does not support this feature."), "{got}");
    update(&mut cluster, &[("streams.version", 0, 2)], false);
    // A broker that cannot.
    let mut request = cluster.registration(2, 77);
    request.features.retain(|feature| &*feature.name != "streams.version");
    request.features.retain(|feature| &*feature.name != "share.version");
    cluster.ask(ControllerRequest::RegisterBroker(request));
    let got = update(&mut cluster, &[("streams.version", 1, 1)], false);
    assert!(got.ends_with("Broker 2 does not support this feature."), "{got}");
}

#[test]
fn switching_elr_on_settles_min_isr() {
    let mut cluster = Cluster::with(1, |settings| settings.min_isr = 2);
    assert_eq!(update(&mut cluster, &[(ELR_FEATURE, 0, 2)], false), "ok");
    let default = ConfigResource::default_broker();
    cluster.set(ResourceKind::Broker, "1", MIN_ISR, "3");
    let record = ConfigRecord { resource: default.clone(), key: MIN_ISR.into(), value: None };
    cluster.commit(&[MetadataRecord::Config(record)]);
    assert_eq!(update(&mut cluster, &[(ELR_FEATURE, 1, 1)], false), "ok");
    assert_eq!(cluster.image().config(&default, MIN_ISR).map(|v| &**v), Some("2"));
    assert_eq!(cluster.image().config(&ConfigResource::broker(1), MIN_ISR), None);
}
