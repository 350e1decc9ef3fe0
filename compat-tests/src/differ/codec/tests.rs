//! Bytes as Kafka's protocol guide has them, and what a strict reader must refuse.

use super::*;
use crate::differ::table::{api, apis};

const HEADER: Header = Header { correlation: 7, client_id: Some("x"), tags: &Value::Null };

#[track_caller]
fn encodes(name: &str, version: i16, body: Value, want: &str) {
    let got = encode_request(api(name), version, &HEADER, &body);
    assert_eq!(hex(&got)["hex"], want.replace(' ', ""));
}

#[test]
fn requests() {
    encodes("ApiVersions", 0, json!({}), "0012 0000 00000007 0001 78");
    let named = json!({"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"});
    encodes("ApiVersions", 3, named, "0012 0003 00000007 0001 78 00 0261 0231 00");
    let all = json!({"Topics": null});
    encodes("Metadata", 1, all.clone(), "0003 0001 00000007 0001 78 ffffffff");
    encodes("Metadata", 9, all, "0003 0009 00000007 0001 78 00 00 01 00 00 00");
    let tags = json!({"_tags": {"200": "ab"}});
    encodes("ListGroups", 3, tags, "0010 0003 00000007 0001 78 00 01 c801 02 6162");
}

#[track_caller]
fn decodes(name: &str, version: i16, frame: &str, want: Result<Value, &str>) {
    let frame = unhex(&frame.replace(' ', "")).expect("hex");
    let got = decode_response(api(name), version, &frame);
    assert_eq!(got, want.map(|body| (7, body)).map_err(|text| Bad(text.to_owned())));
}

#[test]
fn answers() {
    decodes("Heartbeat", 0, "00000007 0019", Ok(json!({"ErrorCode": 25})));
    let whole = json!({"ThrottleTimeMs": 1, "ErrorCode": -1});
    decodes("Heartbeat", 4, "00000007 00 00000001 ffff 00", Ok(whole));
    let tagged = json!({"ThrottleTimeMs": 1, "ErrorCode": 0, "_tags": {"5": {"hex": "61"}}});
    decodes("Heartbeat", 4, "00000007 00 00000001 0000 01 05 01 61", Ok(tagged));
    decodes("Heartbeat", 0, "00000007 0019 00", Err("1 bytes left over"));
    decodes("Heartbeat", 0, "00000007 00", Err("ErrorCode: 2 bytes, 1 there"));
    decodes("Heartbeat", 4, "00000007 01 05 00 00000001 0000 00", Err("tags in the header"));
    let twice = "00000007 00 00000001 0000 02 05 00 05 00";
    decodes("Heartbeat", 4, twice, Err("tag 5 is out of order"));
    let null = "Results: null, which it may not be";
    decodes("DeleteGroups", 0, "00000007 00000000 ffffffff", Err(null));
    let long = "Results: length 9 with 0 bytes left";
    decodes("DeleteGroups", 0, "00000007 00000000 00000009", Err(long));
}

/// The defaults of every request of every version make a body, and no two versions share a mistake.
#[test]
fn every_request_encodes() {
    let mut count = 0;
    for api in apis().values() {
        for version in api.stable() {
            let bytes = encode_request(api, version, &HEADER, &json!({}));
            assert!(bytes.len() >= 11, "{} v{version}", api.name);
            count += 1;
        }
    }
    assert!(count > 250, "{count} versions");
}
