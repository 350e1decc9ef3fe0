//! Decides what may become of the cluster: requests in, records out.

mod request;

pub use request::*;
