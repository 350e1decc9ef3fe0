//! Cases over the configuration, by subject; here what they share and what holds without any.

mod agreeing;
mod changes;
mod described;
mod loading;
mod table;

use std::sync::Arc;

use super::*;

fn load(text: &str) -> Result<Loaded, ConfigError> {
    Config::load(Some(("server.properties", text)), &[])
}

#[track_caller]
fn good(text: &str) -> Loaded {
    load(text).unwrap_or_else(|error| panic!("{text:?} is refused: {error}"))
}

#[test]
fn nothing_configured_is_one_node_on_the_local_host() {
    let config = Config::defaults();
    assert_eq!(config.node_id(), 0);
    assert_eq!(config.roles(), Roles { broker: true, controller: true });
    assert_eq!(config.log_dirs(), [PathBuf::from("./gracchus-data")]);
    assert_eq!(config.metadata_dir(), PathBuf::from("./gracchus-data"));
    let listeners: Vec<_> = config.broker_listeners().map(|l| l.address().to_string()).collect();
    assert_eq!(listeners, ["127.0.0.1:9092"]);
    assert_eq!(config.advertised_listeners().count(), 1);
    assert_eq!(config.controller_listeners().count(), 0);
    assert_eq!(config.inter_broker_listener(), "PLAINTEXT");
    assert_eq!(config.http_listen().map(HostPort::to_string).as_deref(), Some("127.0.0.1:9404"));
    assert_eq!(config.long(keys::LOG_FLUSH_INTERVAL_MESSAGES), 1);
    assert_eq!(config.internal_replication(keys::OFFSETS_TOPIC_REPLICATION_FACTOR, 1), 1);
    assert_eq!(config.internal_replication(keys::OFFSETS_TOPIC_REPLICATION_FACTOR, 5), 3);
}
