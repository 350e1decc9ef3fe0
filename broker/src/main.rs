//! The `gracchus` binary.

fn main() {}
