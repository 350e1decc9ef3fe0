//! The log on disk: segments, indexes, producer state, checkpoints, and the two traits it stands on
//! (`Disk`, `Kv`). Synchronous; `now` is an argument.

pub mod checkpoint;
pub mod dirs;
pub mod disk;
pub mod epochs;
pub mod errors;
pub mod flush;
pub mod kv;
pub mod log;
pub mod producers;
