//! The simulator, the checker of histories, and the rules that the repository itself must keep.
//!
//! A run ([`world::run`]) is a whole broker, its clients and its faults on one thread in virtual
//! time, drawn from one seed; `check` says what was wrong with what the clients saw.

pub mod check;
pub mod client;
pub mod clock;
pub mod dice;
pub mod faults;
pub mod history;
pub mod net;
pub mod node;
pub mod plan;
pub mod tidy;
pub mod trace;
pub mod workload;
pub mod world;
