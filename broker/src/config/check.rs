//! What settings must be together: addresses and roles become structs, pairs must agree.
//! A single value was checked before, in `value.rs`.

use std::collections::BTreeMap;

use super::listener::{
    Listener, Protocol, parse_endpoint, parse_host_port, parse_protocol_map, parse_voter,
};
use super::load::{Findings, Given};
use super::notice::{Notice, Place, Problem};
use super::row::{Int, Kind, Row};
use super::{Config, Key, Roles, Setting, is_wildcard, keys};

/// The texts as they were given, to say where a problem lies.
type Texts = BTreeMap<String, Given>;

pub(super) fn complete(
    set: BTreeMap<&'static str, Setting>,
    custom: BTreeMap<String, String>,
    given: &Texts,
    findings: &mut Findings,
) -> Config {
    let mut config = Config {
        set,
        custom,
        node_id: 0,
        listeners: Vec::new(),
        advertised: Vec::new(),
        controller_names: Vec::new(),
        inter_broker: String::new(),
        voters: Vec::new(),
        bootstrap: Vec::new(),
        http: None,
    };
    let mut check = Check { given, findings };
    config.node_id = check.node_id(&config);
    config.controller_names = upper(&config.list(keys::CONTROLLER_LISTENER_NAMES));
    check.listeners(&mut config);
    check.quorum(&mut config);
    check.http(&mut config);
    check.roles(&config);
    config.inter_broker = check.inter_broker(&config);
    check.bounds_between(&config);
    check.limits(&config);
    config
}

/// What is wrong with these settings together.
pub(super) fn problems(
    set: BTreeMap<&'static str, Setting>,
    custom: BTreeMap<String, String>,
) -> Vec<Problem> {
    let given = |(name, setting): (&&str, &Setting)| {
        ((*name).to_owned(), Given { place: Place::Nowhere, text: setting.raw.clone() })
    };
    let given: Texts = set.iter().map(given).collect();
    let mut findings = Findings::default();
    complete(set, custom, &given, &mut findings);
    findings.problems
}

fn upper(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_ascii_uppercase()).collect()
}

struct Check<'a> {
    given: &'a Texts,
    findings: &'a mut Findings,
}

impl Check<'_> {
    /// Something is wrong with a setting; `text` follows key and value.
    fn wrong(&mut self, row: &Row, text: impl Into<String>) {
        let given = self.given.get(row.name);
        self.findings.problems.push(Problem {
            place: given.map_or(Place::Nowhere, |given| given.place.clone()),
            key: row.name.to_owned(),
            value: given.filter(|_| row.kind != Kind::Password).map(|given| given.text.clone()),
            text: text.into(),
        });
    }

    fn remark(&mut self, row: &Row, text: impl Into<String>) {
        let place = self.given.get(row.name).map_or(Place::Nowhere, |given| given.place.clone());
        self.findings.notices.push(Notice { place, key: row.name.to_owned(), text: text.into() });
    }

    fn require(&mut self, good: bool, row: &Row, text: impl Into<String>) {
        if !good {
            self.wrong(row, text);
        }
    }

    fn node_id(&mut self, config: &Config) -> i32 {
        let node = config.int(keys::NODE_ID);
        let old = config.int(keys::BROKER_ID);
        match (config.is_set(keys::NODE_ID.row), config.is_set(keys::BROKER_ID.row) && old >= 0) {
            (true, true) => {
                self.require(node == old, keys::BROKER_ID.row, "must equal node.id");
                node
            }
            (false, true) => {
                self.remark(keys::BROKER_ID.row, "is the old name of node.id");
                old
            }
            _ => node,
        }
    }

    fn listeners(&mut self, config: &mut Config) {
        let protocols = self.protocols(config);
        let row = keys::LISTENERS.row;
        config.listeners = self.endpoints(row, &config.list(keys::LISTENERS), &protocols);
        self.require(distinct(&config.listeners, |l| &l.name), row, "must not repeat a name");
        for (index, listener) in config.listeners.iter().enumerate() {
            let clash = |other: &&Listener| {
                listener.port != 0 && other.port == listener.port && same_host(other, listener)
            };
            if let Some(other) = config.listeners.iter().take(index).find(clash) {
                let text = format!("{} and {} must not share a port", other.name, listener.name);
                self.wrong(row, text);
            }
        }
        config.advertised = match config.opt_list(keys::ADVERTISED_LISTENERS) {
            Some(texts) => self.advertised(config, &texts, &protocols),
            None => self.advertise_as_listened(config),
        };
    }

    fn protocols(&mut self, config: &Config) -> Vec<(String, Protocol)> {
        let row = keys::LISTENER_SECURITY_PROTOCOL_MAP.row;
        let pairs = super::elements(config.string(keys::LISTENER_SECURITY_PROTOCOL_MAP));
        let mut map = parse_protocol_map(pairs).unwrap_or_else(|pair| {
            let names = "PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL";
            self.wrong(row, format!("{pair:?} must be NAME:PROTOCOL, once, with one of {names}"));
            Vec::new()
        });
        if !config.is_set(row) {
            for name in &config.controller_names {
                if map.iter().all(|(known, _)| known != name) {
                    map.push((name.clone(), Protocol::Plaintext));
                }
            }
        }
        map
    }

    fn endpoints(
        &mut self,
        row: &Row,
        texts: &[&str],
        protocols: &[(String, Protocol)],
    ) -> Vec<Listener> {
        let mut found = Vec::new();
        for text in texts {
            let Some((name, address)) = parse_endpoint(text) else {
                self.wrong(row, format!("{text:?} must look like NAME://host:port"));
                continue;
            };
            match protocols.iter().find(|(known, _)| *known == name) {
                Some(&(_, protocol)) => {
                    found.push(Listener { name, host: address.host, port: address.port, protocol })
                }
                None => {
                    let text = format!("{name} must be named in listener.security.protocol.map");
                    self.wrong(row, text);
                }
            }
        }
        found
    }

    fn advertised(
        &mut self,
        config: &Config,
        texts: &[&str],
        protocols: &[(String, Protocol)],
    ) -> Vec<Listener> {
        let row = keys::ADVERTISED_LISTENERS.row;
        let found = self.endpoints(row, texts, protocols);
        self.require(distinct(&found, |l| &l.name), row, "must not repeat a name");
        for listener in &found {
            if !listener.host.is_empty() && is_wildcard(&listener.host) {
                let host = &listener.host;
                self.wrong(row, format!("nobody can connect to {host}; give a real address"));
            }
            if config.listeners.iter().all(|known| known.name != listener.name) {
                self.wrong(row, format!("{} must be one of listeners", listener.name));
            }
        }
        found
    }

    /// Without `advertised.listeners`, a wildcard is answered with the address by which the
    /// client came; Kafka refuses it or looks up the host name.
    fn advertise_as_listened(&mut self, config: &Config) -> Vec<Listener> {
        let mut found = config.listeners.clone();
        for listener in found.iter_mut().filter(|listener| listener.is_wildcard()) {
            listener.host.clear();
            let name = &listener.name;
            self.remark(
                keys::LISTENERS.row,
                format!(
                    "advertises to each client of {name} the address by which it came; set \
                     advertised.listeners to choose another"
                ),
            );
        }
        found
    }

    fn quorum(&mut self, config: &mut Config) {
        let row = keys::CONTROLLER_QUORUM_VOTERS.row;
        let mut voters = Vec::new();
        for text in config.list(keys::CONTROLLER_QUORUM_VOTERS) {
            match parse_voter(text) {
                Some(voter) => voters.push(voter),
                None => self.wrong(row, format!("{text:?} must look like id@host:port")),
            }
        }
        self.require(distinct(&voters, |voter| &voter.id), row, "must not repeat an id");
        let row = keys::CONTROLLER_QUORUM_BOOTSTRAP_SERVERS.row;
        let mut servers = Vec::new();
        for text in config.list(keys::CONTROLLER_QUORUM_BOOTSTRAP_SERVERS) {
            match parse_host_port(text).filter(|server| !server.host.is_empty()) {
                Some(server) => servers.push(server),
                None => self.wrong(row, format!("{text:?} must look like host:port")),
            }
        }
        if !voters.is_empty() && !servers.is_empty() {
            self.remark(row, "is not needed beside controller.quorum.voters");
        }
        config.voters = voters;
        config.bootstrap = servers;
    }

    fn http(&mut self, config: &mut Config) {
        let text = config.string(keys::HTTP_LISTEN);
        if text.is_empty() {
            return;
        }
        config.http = parse_host_port(text);
        if config.http.is_none() {
            self.wrong(keys::HTTP_LISTEN.row, "must look like host:port");
        }
    }

    fn roles(&mut self, config: &Config) {
        let roles = config.roles();
        let row = keys::PROCESS_ROLES.row;
        self.require(roles.broker || roles.controller, row, "must name a role");
        let names = config.list(keys::CONTROLLER_LISTENER_NAMES).join(", ");
        let named = config.controller_listeners().count() > 0;
        let quorum = !config.voters.is_empty() || !config.bootstrap.is_empty();
        let row = keys::LISTENERS.row;
        if roles.controller && quorum {
            let text = format!("must have a listener for the quorum, one of {names}");
            self.require(named, row, text);
        }
        if !roles.controller {
            let text = format!("must not have {names} on a node that is no controller");
            self.require(!named, row, text);
            let text =
                "must name the quorum, or bootstrap servers, on a node that is no controller";
            self.require(quorum, keys::CONTROLLER_QUORUM_VOTERS.row, text);
        }
        if !roles.broker {
            let text = format!("must have {names} only on a node that is no broker");
            self.require(config.broker_listeners().count() == 0, row, text);
        }
        self.member(config, roles);
    }

    fn member(&mut self, config: &Config, roles: Roles) {
        if config.voters.is_empty() {
            return;
        }
        let voter = config.voters.iter().any(|voter| voter.id == config.node_id);
        let id = config.node_id;
        let row = keys::CONTROLLER_QUORUM_VOTERS.row;
        if roles.controller {
            self.require(voter, row, format!("must have this node's id {id}"));
        } else {
            self.require(!voter, row, format!("must not have {id}, which is no controller"));
        }
    }

    fn inter_broker(&mut self, config: &Config) -> String {
        let protocol_row = keys::SECURITY_INTER_BROKER_PROTOCOL.row;
        let name_row = keys::INTER_BROKER_LISTENER_NAME.row;
        let (row, name) = match config.opt_string(keys::INTER_BROKER_LISTENER_NAME) {
            Some(name) => {
                let text = "must not be given together with security.inter.broker.protocol";
                self.require(!config.is_set(protocol_row), name_row, text);
                (name_row, name.to_ascii_uppercase())
            }
            None => (protocol_row, config.string(keys::SECURITY_INTER_BROKER_PROTOCOL).to_owned()),
        };
        if config.roles().broker && !config.listeners.is_empty() {
            let known = config.advertised_listeners().any(|listener| listener.name == name);
            let text = format!("brokers talk over {name}, which must be an advertised listener");
            self.require(known, row, text);
        }
        name
    }

    /// Defaults of groups must lie between the bounds for groups.
    fn bounds_between(&mut self, config: &Config) {
        for (low, value, high) in WITHIN {
            let (min, max) = (config.int(*low), config.int(*high));
            let text = format!("must not be above {}", high.row.name);
            self.require(min <= max, low.row, text);
            let now = config.int(*value);
            let text = format!("must be from {min} to {max}, the bounds for groups");
            self.require((min..=max).contains(&now) || min > max, value.row, text);
        }
        for (less, more) in BELOW {
            let text = format!("must be less than {}", more.row.name);
            self.require(config.int(*less) < config.int(*more), less.row, text);
        }
        for (less, more) in NOT_ABOVE {
            let text = format!("must not be above {}", more.row.name);
            self.require(config.int(*less) <= config.int(*more), less.row, text);
        }
    }

    fn limits(&mut self, config: &Config) {
        let beat = i64::from(config.int(keys::BROKER_HEARTBEAT_INTERVAL_MS));
        let session = i64::from(config.int(keys::BROKER_SESSION_TIMEOUT_MS));
        let row = keys::BROKER_HEARTBEAT_INTERVAL_MS.row;
        self.require(beat * 2 <= session, row, "must be at most half broker.session.timeout.ms");
        for (key, least) in [(keys::LOG_ROLL_MS, 1), (keys::LOG_ROLL_JITTER_MS, 0)] {
            let value = config.opt_long(key).unwrap_or(least);
            self.require(value >= least, key.row, format!("must be at least {least}"));
        }
        let retention = [
            (keys::LOG_RETENTION_MS.row, config.opt_long(keys::LOG_RETENTION_MS)),
            (
                keys::LOG_RETENTION_MINUTES.row,
                config.opt_int(keys::LOG_RETENTION_MINUTES).map(i64::from),
            ),
            (keys::LOG_RETENTION_HOURS.row, Some(i64::from(config.int(keys::LOG_RETENTION_HOURS)))),
        ];
        for (row, value) in retention {
            // Kafka takes every negative number for -1.
            self.require(value != Some(0), row, "must be at least 1, or -1 for ever");
        }
        let queued = config.long(keys::QUEUED_MAX_REQUEST_BYTES);
        let request = i64::from(config.int(keys::SOCKET_REQUEST_MAX_BYTES));
        let row = keys::QUEUED_MAX_REQUEST_BYTES.row;
        let good = queued <= 0 || queued >= request;
        self.require(good, row, "must be -1 or at least socket.request.max.bytes");
        for key in [keys::OFFSETS_TOPIC_COMPRESSION_CODEC, CODEC_OF_SHARE_STATE] {
            let good = (0..=4).contains(&config.int(key));
            self.require(good, key.row, "must be from 0 to 4");
        }
        let row = keys::REPLICA_FETCH_WAIT_MAX_MS.row;
        let wait = i64::from(config.int(keys::REPLICA_FETCH_WAIT_MAX_MS));
        let good = wait <= config.long(keys::REPLICA_LAG_TIME_MAX_MS);
        self.require(good, row, "must not be above replica.lag.time.max.ms");
        self.per_address(config);
        self.cordoned(config);
    }

    fn per_address(&mut self, config: &Config) {
        let row = keys::MAX_CONNECTIONS_PER_IP_OVERRIDES.row;
        match connection_overrides(config.string(keys::MAX_CONNECTIONS_PER_IP_OVERRIDES)) {
            None => self.wrong(row, "must be a list of host:count pairs"),
            Some(overrides) => {
                let good = config.int(keys::MAX_CONNECTIONS_PER_IP) > 0 || !overrides.is_empty();
                let text = format!("must be at least 1 unless {} is set", row.name);
                self.require(good, keys::MAX_CONNECTIONS_PER_IP.row, text);
            }
        }
    }

    fn cordoned(&mut self, config: &Config) {
        let known = config.log_dirs();
        for dir in config.list(keys::CORDONED_LOG_DIRS) {
            if dir != "*" && !known.iter().any(|log_dir| log_dir.as_os_str() == dir) {
                let text = format!("{dir} must be one of log.dirs, or * alone");
                self.wrong(keys::CORDONED_LOG_DIRS.row, text);
            }
        }
    }
}

/// `max.connections.per.ip.overrides` as pairs; `None` when it is malformed.
pub(super) fn connection_overrides(text: &str) -> Option<Vec<(String, i32)>> {
    super::elements(text)
        .map(|pair| {
            let (host, count) = pair.rsplit_once(':')?;
            let count = count.trim().parse().ok().filter(|count| *count >= 0)?;
            let host = host.trim();
            (!host.is_empty()).then(|| (host.to_owned(), count))
        })
        .collect()
}

const CODEC_OF_SHARE_STATE: Key<Int> = keys::SHARE_COORDINATOR_STATE_TOPIC_COMPRESSION_CODEC;

/// Least value for groups, the default, greatest value for groups.
const WITHIN: &[(Key<Int>, Key<Int>, Key<Int>)] = &[
    (
        keys::GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS,
        keys::GROUP_CONSUMER_SESSION_TIMEOUT_MS,
        keys::GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS,
    ),
    (
        keys::GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS,
        keys::GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,
        keys::GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS,
    ),
    (
        keys::GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS,
        keys::GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS,
        keys::GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS,
    ),
    (
        keys::GROUP_SHARE_MIN_SESSION_TIMEOUT_MS,
        keys::GROUP_SHARE_SESSION_TIMEOUT_MS,
        keys::GROUP_SHARE_MAX_SESSION_TIMEOUT_MS,
    ),
    (
        keys::GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS,
        keys::GROUP_SHARE_HEARTBEAT_INTERVAL_MS,
        keys::GROUP_SHARE_MAX_HEARTBEAT_INTERVAL_MS,
    ),
    (
        keys::GROUP_SHARE_MIN_ASSIGNMENT_INTERVAL_MS,
        keys::GROUP_SHARE_ASSIGNMENT_INTERVAL_MS,
        keys::GROUP_SHARE_MAX_ASSIGNMENT_INTERVAL_MS,
    ),
    (
        keys::GROUP_SHARE_MIN_DELIVERY_COUNT_LIMIT,
        keys::GROUP_SHARE_DELIVERY_COUNT_LIMIT,
        keys::GROUP_SHARE_MAX_DELIVERY_COUNT_LIMIT,
    ),
    (
        keys::GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS,
        keys::GROUP_SHARE_RECORD_LOCK_DURATION_MS,
        keys::GROUP_SHARE_MAX_RECORD_LOCK_DURATION_MS,
    ),
    (
        keys::GROUP_SHARE_MIN_PARTITION_MAX_RECORD_LOCKS,
        keys::GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS,
        keys::GROUP_SHARE_MAX_PARTITION_MAX_RECORD_LOCKS,
    ),
    (
        keys::GROUP_STREAMS_MIN_SESSION_TIMEOUT_MS,
        keys::GROUP_STREAMS_SESSION_TIMEOUT_MS,
        keys::GROUP_STREAMS_MAX_SESSION_TIMEOUT_MS,
    ),
    (
        keys::GROUP_STREAMS_MIN_HEARTBEAT_INTERVAL_MS,
        keys::GROUP_STREAMS_HEARTBEAT_INTERVAL_MS,
        keys::GROUP_STREAMS_MAX_HEARTBEAT_INTERVAL_MS,
    ),
    (
        keys::GROUP_STREAMS_MIN_ASSIGNMENT_INTERVAL_MS,
        keys::GROUP_STREAMS_ASSIGNMENT_INTERVAL_MS,
        keys::GROUP_STREAMS_MAX_ASSIGNMENT_INTERVAL_MS,
    ),
];

/// A heartbeat interval must leave room for more than one beat in a session.
const BELOW: &[(Key<Int>, Key<Int>)] = &[
    (keys::GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS, keys::GROUP_CONSUMER_SESSION_TIMEOUT_MS),
    (keys::GROUP_SHARE_HEARTBEAT_INTERVAL_MS, keys::GROUP_SHARE_SESSION_TIMEOUT_MS),
    (keys::GROUP_STREAMS_HEARTBEAT_INTERVAL_MS, keys::GROUP_STREAMS_SESSION_TIMEOUT_MS),
];

const NOT_ABOVE: &[(Key<Int>, Key<Int>)] = &[
    (keys::GROUP_MIN_SESSION_TIMEOUT_MS, keys::GROUP_MAX_SESSION_TIMEOUT_MS),
    (keys::GROUP_STREAMS_NUM_STANDBY_REPLICAS, keys::GROUP_STREAMS_MAX_STANDBY_REPLICAS),
    (keys::GROUP_STREAMS_NUM_WARMUP_REPLICAS, keys::GROUP_STREAMS_MAX_WARMUP_REPLICAS),
    (keys::REPLICA_FETCH_WAIT_MAX_MS, keys::REPLICA_SOCKET_TIMEOUT_MS),
];

fn distinct<T, K: PartialEq>(items: &[T], key: impl Fn(&T) -> &K) -> bool {
    items.iter().enumerate().all(|(i, item)| items.iter().take(i).all(|o| key(o) != key(item)))
}

/// Two listeners may share a port on different addresses only.
fn same_host(left: &Listener, right: &Listener) -> bool {
    left.host == right.host || left.is_wildcard() || right.is_wildcard()
}
