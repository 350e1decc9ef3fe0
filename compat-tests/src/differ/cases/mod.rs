//! The cases, by what they are about.

mod configs;
mod fetch;
mod framing;
mod groups;
mod idempotence;
mod metadata;
mod offsets;
mod produce;
mod sessions;
mod sweep;
mod topics;

use super::run::Cases;

/// All cases; no two have the same name.
pub fn all() -> Cases {
    let mut cases = Cases::default();
    let parts = [
        configs::add,
        fetch::add,
        framing::add,
        groups::add,
        idempotence::add,
        metadata::add,
        offsets::add,
        produce::add,
        sessions::add,
        sweep::add,
        topics::add,
    ];
    parts.iter().for_each(|add| add(&mut cases));
    cases.list.sort_by(|a, b| a.name.cmp(&b.name));
    for pair in cases.list.windows(2) {
        assert_ne!(pair[0].name, pair[1].name, "two cases of one name");
    }
    cases
}
