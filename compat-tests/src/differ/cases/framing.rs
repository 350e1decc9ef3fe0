//! ApiVersions and what is below the messages: headers, lengths, order, rubbish.

use serde_json::{Value, json};

use crate::differ::codec::{self, Header};
use crate::differ::context::{T, with};
use crate::differ::run::Cases;
use crate::differ::table;

pub fn add(cases: &mut Cases) {
    versions(cases);
    versions_in_detail(cases);
    rubbish(cases);
    tags(cases);
    order(cases);
    counts(cases);
}

fn ok() -> Value {
    json!({"ClientSoftwareName": "differ", "ClientSoftwareVersion": "1"})
}

fn header(key: i16, version: i16, flexible: bool) -> Vec<u8> {
    let header = Header { correlation: 7, client_id: Some("x"), tags: &Value::Null };
    codec::encode_header(key, version, flexible, &header)
}

/// The bytes that come back on a connection of its own, or what happens.
fn bytes_back(t: &T, frame: &[u8]) -> Value {
    match t.conn().patient(3000).exchange(frame) {
        Ok(bytes) => codec::hex(&bytes),
        Err(failure) => failure.value(),
    }
}

fn versions(cases: &mut Cases) {
    for version in [6, 99, i16::MAX] {
        cases.add(format!("apiversions/too new v{version}"), move |t| {
            let mut frame = header(18, version, true);
            let mut conn = t.conn().patient(3000);
            let bare = conn.exchange(&frame).map_or_else(|why| why.value(), |b| codec::hex(&b));
            t.see("nothing behind the header", bare);
            frame.extend(b"junk");
            let junk = conn.exchange(&frame).map_or_else(|why| why.value(), |b| codec::hex(&b));
            t.see("junk behind it", junk);
            let after = conn.ask("ApiVersions", 3, &ok());
            t.see("the connection goes on", after["ErrorCode"].clone());
            Ok(())
        });
    }
    cases.add("apiversions/too new, old header", |t| {
        let frame = header(18, 99, false);
        let bare = bytes_back(t, &frame);
        t.see("bare", bare);
        let junk = bytes_back(t, &[frame, b"junk".to_vec()].concat());
        t.see("junk", junk);
        let negative = bytes_back(t, &header(18, -1, false));
        t.see("v-1", negative);
        Ok(())
    });
}

fn versions_in_detail(cases: &mut Cases) {
    let long = "a".repeat(1000);
    let names = [
        ("letter", "a"),
        ("inside", "a-b.c"),
        ("empty", ""),
        ("space", "a b"),
        ("dash first", "-a"),
        ("dash last", "a-"),
        ("not ASCII", "\u{e9}"),
        ("underscore", "a_b"),
        ("dot first", ".a"),
        ("dot last", "a."),
        ("digit", "9"),
        ("long", &long),
        ("control", "a\n"),
        ("slash", "a/b"),
    ];
    for (label, name) in names {
        let name = name.to_owned();
        cases.add(format!("apiversions/software {label}"), move |t| {
            for version in 3..=5 {
                let body = with(ok(), json!({ "ClientSoftwareName": name }));
                let answer = t.ask("ApiVersions", version, body);
                t.see(format!("name v{version}"), brief(&answer));
            }
            let body = with(ok(), json!({ "ClientSoftwareVersion": name }));
            let answer = t.ask("ApiVersions", 3, body);
            t.see("version", brief(&answer));
            Ok(())
        });
    }
    cases.add("apiversions/cluster and node", |t| {
        let cluster = t.need("DescribeCluster", 0, json!({}))?["ClusterId"].clone();
        let asked = [
            ("right", json!({"ClusterId": cluster, "NodeId": 0})),
            ("wrong cluster", json!({"ClusterId": "nope"})),
            ("wrong node", json!({"NodeId": 4711})),
            ("right cluster, wrong node", json!({"ClusterId": cluster, "NodeId": 4711})),
            ("wrong cluster, right node", json!({"ClusterId": "nope", "NodeId": 0})),
        ];
        for (label, more) in asked {
            let answer = t.ask("ApiVersions", 5, with(ok(), more));
            t.see(label, brief(&answer));
        }
        Ok(())
    });
    cases.add("apiversions/twice", |t| {
        for version in [3, 0, 3] {
            let answer = t.ask("ApiVersions", version, ok());
            t.see("again", brief(&answer));
        }
        Ok(())
    });
}

/// The code, and whether there is a list; the table itself is what the sweep looks at.
fn brief(answer: &Value) -> Value {
    match answer["ApiKeys"].as_array() {
        Some(keys) => json!({"ErrorCode": answer["ErrorCode"], "keys": !keys.is_empty()}),
        None => answer.clone(),
    }
}

fn rubbish(cases: &mut Cases) {
    let int = |value: i32| value.to_be_bytes().to_vec();
    let tls = [vec![0x16, 3, 1, 1, 0, 1, 0, 0, 0xfc, 3, 3], vec![0; 200]].concat();
    let frame = |bytes: Vec<u8>| [(bytes.len() as i32).to_be_bytes().to_vec(), bytes].concat();
    let client = |length: i16, rest: &[u8]| {
        let mut bytes = vec![0, 3, 0, 1, 0, 0, 0, 1];
        bytes.extend(length.to_be_bytes());
        bytes.extend(rest);
        bytes
    };
    let all: Vec<(&str, Vec<u8>)> = vec![
        ("http", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("tls", tls),
        ("length -1", int(-1)),
        ("length min", int(i32::MIN)),
        ("length max", int(i32::MAX)),
        ("length above the limit", int(104_857_601)),
        ("length 0", int(0)),
        ("length 1", frame(vec![0])),
        ("length 4", frame(vec![0, 3, 0, 0])),
        ("length 8", frame(vec![0, 3, 0, 1, 0, 0, 0, 1])),
        ("client id cut short", frame(client(40, b"ab"))),
        ("client id -2", frame(client(-2, &[0; 4]))),
        ("client id not UTF-8", frame(client(2, &[0xff, 0xfe, 0, 0, 0, 0]))),
    ];
    for (label, bytes) in all {
        cases.add(format!("framing/rubbish {label}"), move |t| {
            let mut other = t.conn();
            let before = other.ask("ApiVersions", 0, &json!({}))["ErrorCode"].clone();
            t.see("another connection before", before);
            let mut conn = t.conn();
            let sent = conn.send_raw(&bytes);
            let fate = sent.map_or_else(|why| why.value(), |()| conn.watch(2000));
            t.see("fate", fate);
            let after = other.ask("ApiVersions", 0, &json!({}))["ErrorCode"].clone();
            t.see("another connection after", after);
            Ok(())
        });
    }
    for key in [-1, 4, 5, 6, 7, 52, 56, 62, 95, 1000, i16::MAX] {
        cases.add(format!("framing/api key {key}"), move |t| {
            let old = bytes_back(t, &[header(key, 0, false), vec![0; 20]].concat());
            t.see("v0", old);
            let new = bytes_back(t, &[header(key, 1, true), vec![0; 20]].concat());
            t.see("v1", new);
            Ok(())
        });
    }
    cases.add("framing/bytes behind the body", |t| {
        let asked = [
            ("ApiVersions", 0, json!({})),
            ("ApiVersions", 3, ok()),
            ("Metadata", 1, json!({"Topics": []})),
            ("Metadata", 9, json!({"Topics": []})),
            ("FindCoordinator", 3, json!({"Key": "x"})),
            ("ListGroups", 0, json!({})),
        ];
        for (api, version, body) in asked {
            let head = Header { correlation: 1, client_id: None, tags: &Value::Null };
            let mut frame = codec::encode_request(table::api(api), version, &head, &body);
            frame.extend([0; 3]);
            let fate = t.conn().patient(3000).exchange(&frame);
            let fate = fate.map_or_else(|why| why.value(), |_| json!("answered"));
            t.see(format!("{api} v{version}"), fate);
        }
        Ok(())
    });
}

fn tags(cases: &mut Cases) {
    let unknown = || json!({"99": "12345", "1000": ""});
    cases.add("framing/unknown tags", move |t| {
        let topic = t.topic("a", 1, &[])?;
        let mut conn = t.conn().with_header_tags(unknown());
        let answer = conn.ask("ApiVersions", 3, &ok());
        t.see("header of ApiVersions", brief(&answer));
        let answer = conn.ask("Metadata", 12, &json!({"Topics": [{"Name": topic}]}));
        t.see("header of Metadata", answer);
        let answer = t.ask("ApiVersions", 3, with(ok(), json!({"_tags": unknown()})));
        t.see("body of ApiVersions", brief(&answer));
        let tagged = json!({"Topics": [{"Name": topic}], "_tags": unknown()});
        t.look("body of Metadata", "Metadata", 12, tagged);
        let tagged = json!({"Topics": [{"Name": topic, "_tags": unknown()}]});
        t.look("struct in Metadata", "Metadata", 9, tagged);
        let zero = json!({"Topics": [{"Name": topic, "_tags": {"0": "abc"}}]});
        t.look("tag 0 where there is none", "Metadata", 9, zero);
        Ok(())
    });
    for (label, client) in [("null", None), ("empty", Some("")), ("long", Some("c"))] {
        cases.add(format!("framing/client id {label}"), move |t| {
            let long = client.map(|text| text.repeat(300));
            let mut conn = t.conn_as(long.as_deref());
            let answer = conn.ask("ApiVersions", 0, &json!({}));
            t.see("ApiVersions v0", brief(&answer));
            let answer = conn.ask("ApiVersions", 3, &ok());
            t.see("ApiVersions v3", brief(&answer));
            for version in [0, 8, 9, 12] {
                let answer = conn.ask("Metadata", version, &json!({"Topics": [{"Name": "a b"}]}));
                t.see(format!("Metadata v{version}"), answer);
            }
            Ok(())
        });
    }
}

fn order(cases: &mut Cases) {
    cases.add("framing/answers in order", |t| {
        let topic = t.topic("a", 1, &[])?;
        let wait = with(t.fetch_body(&topic, 0), json!({"MaxWaitMs": 600, "MinBytes": 1}));
        let mut conn = t.conn();
        let asked = [
            ("Fetch", 11, wait),
            ("Metadata", 9, json!({"Topics": []})),
            ("ListOffsets", 5, json!({"ReplicaId": -1, "Topics": []})),
            ("Heartbeat", 3, json!({})),
        ];
        for (api, version, body) in &asked {
            conn.start(api, *version, body).ok();
        }
        for (api, ..) in &asked {
            let answer = conn.finish().unwrap_or_else(|why| why.value());
            t.see(*api, answer);
        }
        Ok(())
    });
    cases.add("framing/byte by byte", |t| {
        let mut conn = t.conn();
        let body = [header(18, 0, false)].concat();
        let frame = [(body.len() as i32).to_be_bytes().to_vec(), body].concat();
        for byte in &frame {
            conn.send_raw(&[*byte]).ok();
            t.pause(2);
        }
        let first = conn.receive().is_ok();
        t.see("slowly", first);
        conn.send_raw(&[frame.clone(), frame].concat()).ok();
        let both = json!([conn.receive().is_ok(), conn.receive().is_ok()]);
        t.see("two at once", both);
        Ok(())
    });
}

/// Counts far beyond the bytes that follow, and ones below zero.
fn counts(cases: &mut Cases) {
    let max = i32::MAX.to_be_bytes().to_vec();
    let varint = |value: u64| {
        let mut out = Vec::new();
        codec::put_varint(&mut out, value);
        out
    };
    let all: Vec<(&str, i16, i16, bool, Vec<u8>)> = vec![
        ("Metadata v1 max", 3, 1, false, max.clone()),
        ("Metadata v1 -2", 3, 1, false, (-2i32).to_be_bytes().to_vec()),
        ("Metadata v1 min", 3, 1, false, i32::MIN.to_be_bytes().to_vec()),
        ("Metadata v9 max", 3, 9, true, [varint(0x7fff_ffff), vec![0; 4]].concat()),
        ("Metadata v9 endless", 3, 9, true, vec![0xff; 12]),
        ("Produce v3", 0, 3, false, [vec![0xff, 0xff, 0, 1, 0, 0, 3, 0xe8], max.clone()].concat()),
        ("Produce v9", 0, 9, true, [vec![0, 0, 1, 0, 0, 3, 0xe8], varint(0x7fff_ffff)].concat()),
        ("Fetch v4", 1, 4, false, [vec![0xff; 4], vec![0; 12], vec![1], max.clone()].concat()),
        ("JoinGroup v0 name", 11, 0, false, vec![0x7f, 0xff]),
        ("CreateTopics v5", 19, 5, true, varint(0x7fff_ffff)),
        ("OffsetCommit v2", 8, 2, false, [vec![0, 1, b'g'], max].concat()),
        ("DeleteTopics v6", 20, 6, true, varint(0x0fff_ffff)),
    ];
    for (label, key, version, flexible, rest) in all {
        cases.add(format!("framing/count {label}"), move |t| {
            let frame = [header(key, version, flexible), rest.clone()].concat();
            let fate = t.conn().patient(3000).exchange(&frame);
            let fate = fate.map_or_else(|why| why.value(), |_| json!("answered"));
            t.see("fate", fate);
            Ok(())
        });
    }
}
