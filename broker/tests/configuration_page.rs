//! `docs/configuration.md` is what the table says. With UPDATE_DOCS=1 it is written anew.

use std::path::Path;

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let wanted = broker::config::page();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &wanted).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let help = "run UPDATE_DOCS=1 cargo test -p broker --test configuration_page";
    assert!(found == wanted, "docs/configuration.md is stale: {help}");
}
