//! The log on disk: segments, indexes, producer state, checkpoints, and the two traits it stands on
//! (`Disk`, `Kv`). Synchronous; `now` is an argument.

pub mod disk;
pub mod kv;
