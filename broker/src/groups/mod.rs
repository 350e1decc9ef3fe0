//! Consumer groups: the coordinator over `__consumer_offsets`.

mod classic;
mod describe;
mod hard;
mod log;
mod machine;
mod messages;
mod offsets;
mod settings;
mod soft;
mod sweep;

pub use hard::{GroupValue, Hard, MemberValue, OffsetValue, Record};
pub use log::{GroupLog, LogBounds};
pub use machine::{GroupMachine, Timer};
pub use messages::*;
pub use settings::GroupSettings;
pub use soft::Soft;

#[cfg(test)]
mod tests;
