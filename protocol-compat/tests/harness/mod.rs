//! What holds for any bytes: the functions that fuzz targets and plain tests share.
//!
//! Each takes arbitrary input and panics when a promise of the crate does not hold for it. Two
//! files, because a target that needs no messages then builds in a fraction of the time.

pub mod batches;
pub mod messages;
