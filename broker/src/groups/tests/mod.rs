//! Tests of the group machine.

mod admin;
mod failures;
mod offsets;
mod random;
mod rounds;
mod script;
mod statics;
