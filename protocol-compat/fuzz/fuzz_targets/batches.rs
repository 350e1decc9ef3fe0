//! Record batches, as a producer or a log gives them.
#![no_main]

#[path = "../../tests/harness/batches.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::any_batches(data));
