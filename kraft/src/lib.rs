//! The metadata quorum and the machinery of coordinators: records, image, controller, raft, machines.
//! Synchronous; no sockets, no clocks.

pub mod machine;
