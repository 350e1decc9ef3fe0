//! The broker: sockets, APIs, partitions, coordinators and the quorum loop, over the synchronous
//! cores.

pub mod apis;
pub mod auto_topics;
pub mod budget;
pub mod cli;
pub mod cold;
pub mod config;
pub mod env;
pub mod errors;
pub mod features;
pub mod fetch;
pub mod groups;
pub mod http;
pub mod log_dirs;
pub mod log_starts;
pub mod loggers;
pub mod metrics;
pub mod net;
pub mod node;
pub mod partition;
pub mod producer_ids;
pub mod progress;
pub mod quorum;
pub mod runtime;
pub mod start;
pub mod stop;
pub mod tasks;
pub mod topics;
