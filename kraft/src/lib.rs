//! The metadata quorum and the machinery of coordinators: records, image, controller, raft,
//! machines. Synchronous; no sockets, no clocks.

pub mod controller;
pub mod image;
pub mod machine;
pub mod raft;
pub mod record;
