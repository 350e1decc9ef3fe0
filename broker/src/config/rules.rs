//! Which settings a topic, a group, a client-metrics subscription or a broker may have: the
//! part of the controller's checks that needs the table.
//!
//! Error codes are those of Kafka 4.4, seen on a live node; the words are ours. What a broker
//! checks of its own settings beyond this, as their sum must work, is `broker_change.rs`.

use kraft::controller::ConfigRules;
use kraft::image::Configs;
use kraft::record::{ConfigResource, ResourceKind};
use protocol_compat::error::ErrorCode;

use super::client_match;
use super::describe::base_row;
use super::dynamic::{DynamicConfig, ResourceConfig};
use super::keys::{self, group, topic};
use super::notice::clip;
use super::row::{Int, Key, Kind, Row, Scope};
use super::value::{BadValue, elements};

/// A refusal as the controller wants it: the code and the text.
pub(super) type Refused = (ErrorCode, String);

/// Bounds for groups and defaults of topics are those that hold on this node.
impl ConfigRules for DynamicConfig {
    fn check(
        &self,
        resource: &ConfigResource,
        overrides: &Configs,
        before: &Configs,
    ) -> Result<(), Refused> {
        let mut changed = overrides.iter().filter(|(key, text)| before.get(*key) != Some(*text));
        let checked = match resource.kind {
            ResourceKind::Topic => self.check_topic(overrides),
            ResourceKind::Group => self.check_group(overrides),
            ResourceKind::ClientMetrics => check_client_metrics(overrides),
            ResourceKind::Broker => changed
                .try_for_each(|(key, text)| broker_setting(resource.name.is_empty(), key, text)),
        };
        checked.map_err(|(code, text)| (code, clip(text)))
    }

    fn list_default(&self, kind: ResourceKind, key: &str) -> Option<String> {
        let row = match kind {
            ResourceKind::Topic => keys::topic_row(key),
            ResourceKind::Broker => keys::broker(key),
            // Kafka appends to no list of these kinds.
            ResourceKind::Group | ResourceKind::ClientMetrics => None,
        }?;
        (row.kind == Kind::List).then(|| row.default_text().unwrap_or_default())
    }
}

impl DynamicConfig {
    fn check_topic(&self, overrides: &Configs) -> Result<(), Refused> {
        check_rows(overrides, keys::topic_row, "topic", ErrorCode::InvalidConfig)?;
        let config = self.topic_config(overrides);
        if config.bool(topic::REMOTE_STORAGE_ENABLE) {
            let row = topic::REMOTE_STORAGE_ENABLE.row;
            return Err(refuse(row, "true", "Gracchus has no tiered storage"));
        }
        let min = config.long(topic::MIN_COMPACTION_LAG_MS);
        let max = config.long(topic::MAX_COMPACTION_LAG_MS);
        if min > max {
            let row = topic::MIN_COMPACTION_LAG_MS.row;
            let text = format!("must not be above max.compaction.lag.ms, which is {max}");
            return Err(refuse(row, &min.to_string(), &text));
        }
        Ok(())
    }

    fn check_group(&self, overrides: &Configs) -> Result<(), Refused> {
        check_rows(overrides, keys::group_row, "group", ErrorCode::InvalidConfig)?;
        let config = self.group_config(overrides);
        for (key, least, most) in GROUP_BOUNDS {
            let least = least.map_or(i32::MIN, |least| self.int(least));
            let most = most.map_or(i32::MAX, |most| self.int(most));
            let value = config.int(*key);
            if overrides.contains_key(key.row.name) && !(least..=most).contains(&value) {
                let text = format!("must be from {least} to {most}, the broker's bounds");
                return Err(refuse(key.row, &value.to_string(), &text));
            }
        }
        for (beat, session) in BEATS {
            let (beat_ms, session_ms) = (config.int(*beat), config.int(*session));
            if beat_ms >= session_ms {
                let text = format!("must be less than {}, which is {session_ms}", session.row.name);
                return Err(refuse(beat.row, &beat_ms.to_string(), &text));
            }
        }
        self.check_group_texts(&config, overrides)
    }

    fn check_group_texts(
        &self,
        config: &ResourceConfig,
        overrides: &Configs,
    ) -> Result<(), Refused> {
        let row = group::STREAMS_ASSIGNOR_NAME.row;
        let assignor = config.opt_string(group::STREAMS_ASSIGNOR_NAME).unwrap_or_default();
        let known = self.list(keys::GROUP_STREAMS_ASSIGNORS);
        if overrides.contains_key(row.name) && !known.contains(&assignor) {
            let text = format!("must be one of {}", known.join(", "));
            return Err(refuse(row, assignor, &text));
        }
        let row = group::ERRORS_DEADLETTERQUEUE_TOPIC_NAME.row;
        let dead_letters = config.string(group::ERRORS_DEADLETTERQUEUE_TOPIC_NAME);
        if dead_letters.starts_with("__") {
            return Err(refuse(row, dead_letters, "must not begin with two underscores"));
        }
        let row = group::STREAMS_RACK_AWARE_ASSIGNMENT_TAGS.row;
        match overrides.get(row.name) {
            Some(text) if repeats(text) => Err(refuse(row, text, "must not repeat a tag")),
            _ => Ok(()),
        }
    }
}

fn check_client_metrics(overrides: &Configs) -> Result<(), Refused> {
    check_rows(
        overrides,
        keys::client_metrics_row,
        "client-metrics",
        // Here alone Kafka calls an unknown key and a bad interval a bad request.
        ErrorCode::InvalidRequest,
    )?;
    let row = keys::client_metrics::MATCH.row;
    let text = overrides.get(row.name).map_or("", |text| text);
    client_match::check(text).map_err(|why| refuse(row, text, &why))
}

/// Every key is in the table of its kind, every value can be read and is in bounds. `code` is
/// for unknown keys and numbers out of bounds, INVALID_CONFIG for the rest.
fn check_rows(
    overrides: &Configs,
    find: impl Fn(&str) -> Option<&'static Row>,
    kind: &str,
    code: ErrorCode,
) -> Result<(), Refused> {
    if let Some(key) = overrides.keys().find(|key| find(key).is_none()) {
        return Err((code, format!("{key} is not a {kind} setting")));
    }
    for (key, text) in overrides {
        let Some(row) = find(key) else { continue };
        match row.parse(text) {
            Ok(_) => {}
            Err(bad @ BadValue::OutOfBounds(_)) if row.kind == Kind::Int => {
                return Err((code, format!("{key}={text}: {bad}")));
            }
            Err(bad) => return Err(refuse(row, text, &bad.to_string())),
        }
    }
    Ok(())
}

/// Whether a broker may have the setting at all, and the value by itself.
///
/// # Errors
/// INVALID_REQUEST in every case, as from Kafka's brokers.
pub(super) fn broker_setting(cluster_wide: bool, key: &str, text: &str) -> Result<(), Refused> {
    let refuse = |why: &str| Err((ErrorCode::InvalidRequest, format!("{key}: {why}")));
    let listener = key.starts_with("listener.name.");
    let Some(row) = base_row(key) else {
        // Settings of plug-ins are taken as they are.
        return if listener && cluster_wide { refuse(ONE_BROKER) } else { Ok(()) };
    };
    if !listener && row.scope == Scope::ReadOnly {
        return refuse("cannot change while the broker runs");
    }
    if !listener && PER_LISTENER_ONLY.contains(&row.name) {
        return refuse("can only change for one listener, as listener.name.LISTENER.SETTING");
    }
    let for_all = if listener {
        SHARED_BY_LISTENERS.contains(&row.name)
    } else {
        row.scope != Scope::PerBroker
    };
    if cluster_wide && !for_all {
        return refuse(ONE_BROKER);
    }
    if row.kind == Kind::List && repeats(text) {
        return refuse("must not repeat an element");
    }
    if row.kind == Kind::Class && row.default_text().as_deref() != Some(text.trim()) {
        return refuse("Gracchus loads no Java classes");
    }
    match row.parse(text) {
        Ok(_) => Ok(()),
        Err(bad) if row.sensitive() => refuse(&bad.to_string()),
        Err(bad) => Err((ErrorCode::InvalidRequest, format!("{key}={text}: {bad}"))),
    }
}

const ONE_BROKER: &str = "can only change for one broker, not for the cluster";

/// Of the settings of single listeners, those that may also be a cluster's default.
const SHARED_BY_LISTENERS: [&str; 3] =
    ["max.connections", "max.connection.creation.rate", "num.network.threads"];

/// TLS stores change for one listener at a time.
const PER_LISTENER_ONLY: [&str; 10] = [
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
];

fn refuse(row: &Row, text: &str, why: &str) -> Refused {
    (ErrorCode::InvalidConfig, format!("{}={text}: {why}", row.name))
}

fn repeats(list: &str) -> bool {
    let all: Vec<&str> = elements(list).collect();
    all.iter().enumerate().any(|(at, element)| all.iter().take(at).any(|old| old == element))
}

/// A group setting and the broker's settings that bound it from below and above.
type GroupBounds = (Key<Int>, Option<Key<Int>>, Option<Key<Int>>);

const GROUP_BOUNDS: &[GroupBounds] = &[
    (
        group::CONSUMER_SESSION_TIMEOUT_MS,
        Some(keys::GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS),
        Some(keys::GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS),
    ),
    (
        group::CONSUMER_HEARTBEAT_INTERVAL_MS,
        Some(keys::GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS),
        Some(keys::GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS),
    ),
    (
        group::CONSUMER_ASSIGNMENT_INTERVAL_MS,
        Some(keys::GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS),
        Some(keys::GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS),
    ),
    (
        group::SHARE_SESSION_TIMEOUT_MS,
        Some(keys::GROUP_SHARE_MIN_SESSION_TIMEOUT_MS),
        Some(keys::GROUP_SHARE_MAX_SESSION_TIMEOUT_MS),
    ),
    (
        group::SHARE_HEARTBEAT_INTERVAL_MS,
        Some(keys::GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS),
        Some(keys::GROUP_SHARE_MAX_HEARTBEAT_INTERVAL_MS),
    ),
    (
        group::SHARE_ASSIGNMENT_INTERVAL_MS,
        Some(keys::GROUP_SHARE_MIN_ASSIGNMENT_INTERVAL_MS),
        Some(keys::GROUP_SHARE_MAX_ASSIGNMENT_INTERVAL_MS),
    ),
    (
        group::SHARE_DELIVERY_COUNT_LIMIT,
        Some(keys::GROUP_SHARE_MIN_DELIVERY_COUNT_LIMIT),
        Some(keys::GROUP_SHARE_MAX_DELIVERY_COUNT_LIMIT),
    ),
    (
        group::SHARE_PARTITION_MAX_RECORD_LOCKS,
        Some(keys::GROUP_SHARE_MIN_PARTITION_MAX_RECORD_LOCKS),
        Some(keys::GROUP_SHARE_MAX_PARTITION_MAX_RECORD_LOCKS),
    ),
    (
        group::SHARE_RECORD_LOCK_DURATION_MS,
        Some(keys::GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS),
        Some(keys::GROUP_SHARE_MAX_RECORD_LOCK_DURATION_MS),
    ),
    (
        group::STREAMS_SESSION_TIMEOUT_MS,
        Some(keys::GROUP_STREAMS_MIN_SESSION_TIMEOUT_MS),
        Some(keys::GROUP_STREAMS_MAX_SESSION_TIMEOUT_MS),
    ),
    (
        group::STREAMS_HEARTBEAT_INTERVAL_MS,
        Some(keys::GROUP_STREAMS_MIN_HEARTBEAT_INTERVAL_MS),
        Some(keys::GROUP_STREAMS_MAX_HEARTBEAT_INTERVAL_MS),
    ),
    (
        group::STREAMS_ASSIGNMENT_INTERVAL_MS,
        Some(keys::GROUP_STREAMS_MIN_ASSIGNMENT_INTERVAL_MS),
        Some(keys::GROUP_STREAMS_MAX_ASSIGNMENT_INTERVAL_MS),
    ),
    (group::STREAMS_NUM_STANDBY_REPLICAS, None, Some(keys::GROUP_STREAMS_MAX_STANDBY_REPLICAS)),
    (group::STREAMS_NUM_WARMUP_REPLICAS, None, Some(keys::GROUP_STREAMS_MAX_WARMUP_REPLICAS)),
    (
        group::STREAMS_TASK_OFFSET_INTERVAL_MS,
        Some(keys::GROUP_STREAMS_MIN_TASK_OFFSET_INTERVAL_MS),
        None,
    ),
];

/// Heartbeat intervals and the session time-outs that must exceed them.
const BEATS: &[(Key<Int>, Key<Int>)] = &[
    (group::CONSUMER_HEARTBEAT_INTERVAL_MS, group::CONSUMER_SESSION_TIMEOUT_MS),
    (group::SHARE_HEARTBEAT_INTERVAL_MS, group::SHARE_SESSION_TIMEOUT_MS),
    (group::STREAMS_HEARTBEAT_INTERVAL_MS, group::STREAMS_SESSION_TIMEOUT_MS),
];
