//! Cases over settings that must agree, and over what addresses and roles become.

use super::*;

/// The one problem of a configuration, without its place; `good` if there is none.
#[track_caller]
fn check(text: &str, want: &str) {
    let found = match load(&text.replace("; ", "\n")) {
        Ok(_) => "good".to_owned(),
        Err(error) => {
            let all: Vec<String> = error
                .problems
                .iter()
                .map(|problem| format!("{}: {}", problem.key, problem.text))
                .collect();
            all.join(" & ")
        }
    };
    assert_eq!(found, want, "{text}");
}

#[test]
fn listeners() {
    let form = "must look like NAME://host:port";
    check("listeners=PLAINTEXT://:9092", "good");
    check("listeners=plaintext://[::1]:9092", "good");
    check("listeners=PLAINTEXT://a:0", "good");
    check("listeners=a:9092", &format!("listeners: \"a:9092\" {form}"));
    check("listeners=PLAINTEXT://a:b", &format!("listeners: \"PLAINTEXT://a:b\" {form}"));
    check("listeners=PLAINTEXT://a:70000", &format!("listeners: \"PLAINTEXT://a:70000\" {form}"));
    check("listeners=PLAINTEXT://::1:9092", &format!("listeners: \"PLAINTEXT://::1:9092\" {form}"));
    check(
        "listeners=PLAINTEXT://a:1,OTHER://a:2",
        "listeners: OTHER must be named in listener.security.protocol.map",
    );
    check(
        "listeners=PLAINTEXT://a:1,OTHER://a:2; \
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "good",
    );
    check(
        "listeners=PLAINTEXT://a:1,SSL://a:1",
        "listeners: PLAINTEXT and SSL must not share a port",
    );
    check("listeners=PLAINTEXT://a:1,SSL://b:1", "good");
    check("listeners=PLAINTEXT://a:0,SSL://a:0", "good");
    check("listeners=PLAINTEXT://a:1,plaintext://a:2", "listeners: must not repeat a name");
    check(
        "listener.security.protocol.map=PLAINTEXT:TCP",
        "listener.security.protocol.map: \"PLAINTEXT:TCP\" must be NAME:PROTOCOL, once, with one \
         of PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL & listeners: PLAINTEXT must be named in \
         listener.security.protocol.map",
    );
}

#[test]
fn advertised() {
    let own = "listeners=PLAINTEXT://:9092; advertised.listeners=";
    check(&format!("{own}PLAINTEXT://b.example:9092"), "good");
    check(&format!("{own}PLAINTEXT://:9092"), "good");
    for host in ["0.0.0.0", "[::]"] {
        let shown = host.trim_matches(['[', ']']);
        check(
            &format!("{own}PLAINTEXT://{host}:9092"),
            &format!("advertised.listeners: nobody can connect to {shown}; give a real address"),
        );
    }
    check(
        &format!("{own}SSL://b:9093"),
        "advertised.listeners: SSL must be one of listeners & security.inter.broker.protocol: \
         brokers talk over PLAINTEXT, which must be an advertised listener",
    );
    let hosts = |text: &str| -> Vec<String> {
        good(text).config.advertised_listeners().map(|l| l.address().to_string()).collect()
    };
    assert_eq!(hosts("listeners=PLAINTEXT://0.0.0.0:9092"), [":9092"]);
    assert_eq!(hosts("listeners=PLAINTEXT://[::]:9092"), [":9092"]);
    assert_eq!(hosts("listeners=PLAINTEXT://[fe80::1]:9092"), ["[fe80::1]:9092"]);
    assert_eq!(hosts("listeners=PLAINTEXT://a:1\nadvertised.listeners=PLAINTEXT://b:2"), ["b:2"]);
}

#[test]
fn between_brokers() {
    let two = "listeners=PLAINTEXT://a:1,IN://a:2; \
               listener.security.protocol.map=PLAINTEXT:PLAINTEXT,IN:SSL; ";
    check(&format!("{two}inter.broker.listener.name=in"), "good");
    check(
        &format!("{two}inter.broker.listener.name=NO"),
        "inter.broker.listener.name: brokers talk over NO, which must be an advertised listener",
    );
    check(
        &format!("{two}inter.broker.listener.name=IN; security.inter.broker.protocol=SSL"),
        "inter.broker.listener.name: must not be given together with \
         security.inter.broker.protocol",
    );
    assert_eq!(
        good("inter.broker.listener.name=plaintext").config.inter_broker_listener(),
        "PLAINTEXT"
    );
}

#[test]
fn roles_and_quorum() {
    let combined = "process.roles=broker,controller; node.id=1; \
                    listeners=PLAINTEXT://:9092,CONTROLLER://:9093; ";
    check(&format!("{combined}controller.quorum.voters=1@a:9093"), "good");
    check(&format!("{combined}controller.quorum.bootstrap.servers=a:9093"), "good");
    check(
        &format!("{combined}controller.quorum.voters=2@a:9093"),
        "controller.quorum.voters: must have this node's id 1",
    );
    check(
        &format!("{combined}controller.quorum.voters=1@a:9093,1@b:9093"),
        "controller.quorum.voters: must not repeat an id",
    );
    check(
        &format!("{combined}controller.quorum.voters=a:9093"),
        "controller.quorum.voters: \"a:9093\" must look like id@host:port",
    );
    check(
        &format!("{combined}controller.quorum.bootstrap.servers=a"),
        "controller.quorum.bootstrap.servers: \"a\" must look like host:port",
    );
    check(
        "controller.quorum.voters=0@a:9093",
        "listeners: must have a listener for the quorum, one of CONTROLLER",
    );
    check(
        "process.roles=broker; node.id=4",
        "controller.quorum.voters: must name the quorum, or bootstrap servers, on a node that is \
         no controller",
    );
    check("process.roles=broker; node.id=4; controller.quorum.voters=1@a:9093", "good");
    check(
        "process.roles=broker; node.id=1; controller.quorum.voters=1@a:9093",
        "controller.quorum.voters: must not have 1, which is no controller",
    );
    check(
        "process.roles=broker; node.id=4; controller.quorum.voters=1@a:9093; \
         listeners=PLAINTEXT://:9092,CONTROLLER://:9093",
        "listeners: must not have CONTROLLER on a node that is no controller",
    );
    check(
        "process.roles=controller; controller.quorum.voters=0@a:9093; \
         listeners=CONTROLLER://:9093",
        "good",
    );
    check(
        "process.roles=controller; controller.quorum.voters=0@a:9093; \
         listeners=PLAINTEXT://:9092,CONTROLLER://:9093",
        "listeners: must have CONTROLLER only on a node that is no broker",
    );
    check(
        "process.roles=",
        "process.roles: must name a role & controller.quorum.voters: must name \
        the quorum, or bootstrap servers, on a node that is no controller & listeners: must have \
        CONTROLLER only on a node that is no broker",
    );
    check("node.id=1; broker.id=2", "broker.id: must equal node.id");
    check("node.id=2; broker.id=2", "good");
}

#[test]
fn numbers() {
    check(
        "broker.heartbeat.interval.ms=4501",
        "broker.heartbeat.interval.ms: must be at most half \
        broker.session.timeout.ms",
    );
    check("log.retention.ms=0", "log.retention.ms: must be at least 1, or -1 for ever");
    check("log.retention.ms=-5", "good");
    check("log.retention.hours=0", "log.retention.hours: must be at least 1, or -1 for ever");
    check("log.roll.ms=0", "log.roll.ms: must be at least 1");
    check("log.roll.jitter.ms=-1", "log.roll.jitter.ms: must be at least 0");
    check(
        "queued.max.request.bytes=5",
        "queued.max.request.bytes: must be -1 or at least socket.request.max.bytes",
    );
    check(
        "offsets.topic.compression.codec=5",
        "offsets.topic.compression.codec: must be from 0 to 4",
    );
    check(
        "group.consumer.session.timeout.ms=1",
        "group.consumer.session.timeout.ms: must be from 45000 to 60000, the bounds for groups & \
         group.consumer.heartbeat.interval.ms: must be less than group.consumer.session.timeout.ms",
    );
    check(
        "group.min.session.timeout.ms=9; group.max.session.timeout.ms=8",
        "group.min.session.timeout.ms: must not be above group.max.session.timeout.ms",
    );
    check(
        "max.connections.per.ip=0",
        "max.connections.per.ip: must be at least 1 unless max.connections.per.ip.overrides is set",
    );
    check("max.connections.per.ip=0; max.connections.per.ip.overrides=a:1", "good");
    check(
        "max.connections.per.ip.overrides=a",
        "max.connections.per.ip.overrides: must be a list of host:count pairs",
    );
    check("http.listen=9404", "http.listen: must look like host:port");
    check("http.listen=", "good");
    check("cordoned.log.dirs=/x", "cordoned.log.dirs: /x must be one of log.dirs, or * alone");
    check("cordoned.log.dirs=/x; log.dirs=/x,/y", "good");
}

/// Files as they come with Kafka, or as its quick-start pages write them.
#[test]
fn kafkas_own_files_load() {
    let combined = "
        process.roles=broker,controller
        node.id=1
        controller.quorum.bootstrap.servers=localhost:9093
        listeners=PLAINTEXT://:9092,CONTROLLER://:9093
        inter.broker.listener.name=PLAINTEXT
        advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
        controller.listener.names=CONTROLLER
        listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\\
          SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
        num.network.threads=3
        num.io.threads=8
        socket.send.buffer.bytes=102400
        socket.receive.buffer.bytes=102400
        socket.request.max.bytes=104857600
        log.dirs=/tmp/kraft-combined-logs
        num.partitions=1
        num.recovery.threads.per.data.dir=1
        offsets.topic.replication.factor=1
        share.coordinator.state.topic.replication.factor=1
        share.coordinator.state.topic.min.isr=1
        transaction.state.log.replication.factor=1
        transaction.state.log.min.isr=1
        log.retention.hours=168
        log.segment.bytes=1073741824
        log.retention.check.interval.ms=300000";
    let config = good(combined).config;
    let names = |listeners: Vec<&Listener>| -> Vec<String> {
        listeners.iter().map(|l| format!("{}={}", l.name, l.address())).collect()
    };
    assert_eq!(names(config.broker_listeners().collect()), ["PLAINTEXT=:9092"]);
    assert_eq!(names(config.controller_listeners().collect()), ["CONTROLLER=:9093"]);
    assert_eq!(names(config.advertised_listeners().collect()), ["PLAINTEXT=localhost:9092"]);
    assert_eq!(names(config.advertised_controllers().collect()), ["CONTROLLER=localhost:9093"]);
    assert_eq!(config.bootstrap_servers()[0].to_string(), "localhost:9093");
    assert_eq!(config.internal_replication(keys::OFFSETS_TOPIC_REPLICATION_FACTOR, 3), 1);

    let three = "
        process.roles=broker,controller
        node.id=2
        controller.quorum.voters=1@k1:9093,2@k2:9093,3@k3:9093
        listeners=PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093,EXTERNAL://0.0.0.0:9094
        advertised.listeners=PLAINTEXT://k2:9092,EXTERNAL://localhost:29094
        controller.listener.names=CONTROLLER
        listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT
        log.dirs=/var/lib/kafka/a,/var/lib/kafka/b";
    let config = good(three).config;
    assert_eq!(config.voters().len(), 3);
    assert_eq!(config.advertised_listeners().count(), 2);
    assert_eq!(config.log_dirs().len(), 2);
    assert_eq!(config.metadata_dir(), PathBuf::from("/var/lib/kafka/a"));
}

/// What a topic's settings come to: `name` is a field of `TopicSettings` as it is debugged.
#[track_caller]
fn check_topic(file: &str, overrides: &str, want: &str) {
    let dynamic = super::described::dynamic(file, "", "");
    let found = format!("{:?}", dynamic.topic(&super::described::configs(overrides)));
    assert!(found.contains(want), "{file} {overrides}: {want} is not in {found}");
}

#[test]
fn topics() {
    check_topic("", "", "flush_messages: 1,");
    check_topic("log.flush.interval.messages=9", "", "flush_messages: 9,");
    check_topic("log.flush.interval.messages=9", "flush.messages=3", "flush_messages: 3,");
    check_topic("", "", "retention_ms: 604800000,");
    check_topic("log.retention.hours=-1", "", "retention_ms: -1,");
    check_topic("log.retention.minutes=2", "", "retention_ms: 120000,");
    check_topic("log.retention.minutes=2\nlog.retention.ms=5", "", "retention_ms: 5,");
    check_topic("log.retention.ms=-5", "", "retention_ms: -1,");
    check_topic("log.roll.hours=1", "", "segment_ms: 3600000,");
    check_topic("log.roll.jitter.hours=2", "", "segment_jitter_ms: 7200000,");
    check_topic("log.flush.scheduler.interval.ms=7", "", "flush_ms: 7,");
    check_topic("", "internal.segment.bytes=100", "segment_bytes: 100,");
    check_topic("", "", "delete: true, compact: false");
    check_topic("", "cleanup.policy=", "delete: false, compact: false");
    check_topic("log.cleanup.policy=compact", "", "delete: false, compact: true");
    check_topic("", "", "compression: None");
    check_topic("", "compression.type=zstd", "compression: Some((Zstd, 3))");
    check_topic("compression.zstd.level=7", "compression.type=zstd", "Some((Zstd, 7))");
    check_topic("", "compression.type=uncompressed", "compression: Some((None, 0))");
    check_topic("", "compression.type=gzip", "compression: Some((Gzip, -1))");
    check_topic("", "message.timestamp.type=LogAppendTime", "log_append_time: true");
    check_topic("", "retention.ms=nonsense", "retention_ms: 604800000,");
    let group = super::described::dynamic("group.streams.assignors=b,c", "", "")
        .group_config(&super::described::configs(""));
    assert_eq!(group.opt_string(keys::group::STREAMS_ASSIGNOR_NAME), Some("b"));
}
