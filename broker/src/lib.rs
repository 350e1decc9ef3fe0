//! The broker: sockets, APIs, partitions, coordinators and the quorum loop, over the synchronous cores.

pub mod cli;
pub mod config;
pub mod groups;
