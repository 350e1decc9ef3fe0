//! Listeners, quorum voters and other addresses, read from their texts.
//! Which listener plays which part is `check.rs` and `mod.rs`.

use std::fmt;

/// A host and a port. The host has no brackets, even if it is an IPv6 address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    pub host: String,
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(out, "[{}]:{}", self.host, self.port)
        } else {
            write!(out, "{}:{}", self.host, self.port)
        }
    }
}

/// What is spoken on a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl Protocol {
    /// Kafka's name of the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Plaintext => "PLAINTEXT",
            Protocol::Ssl => "SSL",
            Protocol::SaslPlaintext => "SASL_PLAINTEXT",
            Protocol::SaslSsl => "SASL_SSL",
        }
    }

    /// The protocol of that name, in any case.
    pub fn from_name(name: &str) -> Option<Protocol> {
        [Protocol::Plaintext, Protocol::Ssl, Protocol::SaslPlaintext, Protocol::SaslSsl]
            .into_iter()
            .find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }

    /// The number in broker registrations (Kafka's `SecurityProtocol.id`).
    pub fn id(self) -> i16 {
        match self {
            Protocol::Plaintext => 0,
            Protocol::Ssl => 1,
            Protocol::SaslPlaintext => 2,
            Protocol::SaslSsl => 3,
        }
    }
}

/// One listener: where it listens, or where clients are told to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Upper case, as Kafka normalises it.
    pub name: String,
    /// Empty: every interface, or when advertised, the address by which the client came.
    pub host: String,
    /// 0: any free port.
    pub port: u16,
    pub protocol: Protocol,
}

impl Listener {
    /// Host and port together.
    pub fn address(&self) -> HostPort {
        HostPort { host: self.host.clone(), port: self.port }
    }

    /// Whether it listens on every interface.
    pub fn is_wildcard(&self) -> bool {
        is_wildcard(&self.host)
    }
}

/// Empty, or one of the addresses that stand for all of them.
pub fn is_wildcard(host: &str) -> bool {
    matches!(host, "" | "0.0.0.0" | "::" | "0:0:0:0:0:0:0:0")
}

/// One voter of the metadata quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voter {
    pub id: i32,
    pub address: HostPort,
}

/// `host:port`, with an IPv6 host in brackets.
pub fn parse_host_port(text: &str) -> Option<HostPort> {
    let (host, port) = text.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    if host.contains(['/', ' ', '[', ']', '@']) || !port.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(HostPort { host: host.to_owned(), port: port.parse().ok()? })
}

/// `id@host:port`.
pub fn parse_voter(text: &str) -> Option<Voter> {
    let (id, address) = text.split_once('@')?;
    let id = id.trim().parse().ok().filter(|id| *id >= 0)?;
    let address = parse_host_port(address).filter(|address| !address.host.is_empty())?;
    Some(Voter { id, address })
}

/// `NAME://host:port`; the protocol of the name is looked up by the caller.
pub fn parse_endpoint(text: &str) -> Option<(String, HostPort)> {
    let (name, address) = text.split_once("://")?;
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || b == b'.';
    if name.is_empty() || !name.bytes().all(good) {
        return None;
    }
    Some((name.to_ascii_uppercase(), parse_host_port(address)?))
}

/// `NAME:PROTOCOL` pairs; the error is the pair that is none or comes twice.
pub fn parse_protocol_map<'a>(
    pairs: impl Iterator<Item = &'a str>,
) -> Result<Vec<(String, Protocol)>, String> {
    let mut map: Vec<(String, Protocol)> = Vec::new();
    for pair in pairs {
        let parsed = pair.split_once(':').and_then(|(name, protocol)| {
            Some((name.trim().to_ascii_uppercase(), Protocol::from_name(protocol.trim())?))
        });
        match parsed {
            Some((name, protocol)) if !name.is_empty() && map.iter().all(|(n, _)| *n != name) => {
                map.push((name, protocol));
            }
            _ => return Err(pair.to_owned()),
        }
    }
    Ok(map)
}
