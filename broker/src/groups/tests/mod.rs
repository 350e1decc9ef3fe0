//! Tests of the group machine.

mod admin;
mod background;
mod codec;
mod failures;
mod offsets;
mod random;
mod recorded;
mod rounds;
mod script;
mod shell;
mod statics;
