//! Consumer groups: the coordinator over `__consumer_offsets`.

mod log;
mod messages;
mod settings;

pub use log::{GroupLog, LogBounds};
pub use messages::*;
pub use settings::GroupSettings;
