//! One request: key, version, body.
#![no_main]

#[path = "../../tests/harness/messages.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::any_request(data));
