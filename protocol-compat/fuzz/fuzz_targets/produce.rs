//! What a producer sends for one partition, under random rules.
#![no_main]

#[path = "../../tests/harness/batches.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::any_produce(data));
