//! Compressed bytes: one byte of codec, then the rest.
#![no_main]

#[path = "../../tests/harness/batches.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::any_compressed(data));
