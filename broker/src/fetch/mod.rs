//! Fetching: sessions and what a request may return. How a request is read and answered is
//! `apis/fetch.rs`.

pub mod session;
