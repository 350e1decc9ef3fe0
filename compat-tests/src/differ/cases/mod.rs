//! The cases, by what they are about.

mod sweep;

use super::run::Cases;

/// All cases; no two have the same name.
pub fn all() -> Cases {
    let mut cases = Cases::default();
    sweep::add(&mut cases);
    cases.list.sort_by(|a, b| a.name.cmp(&b.name));
    for pair in cases.list.windows(2) {
        assert_ne!(pair[0].name, pair[1].name, "two cases of one name");
    }
    cases
}
