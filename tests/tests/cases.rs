//! docs/cases.md names tests; each of them is there, and no row is without one.

use std::fs;

use tests::tidy;

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether the source has a function of that name under the attribute of a test.
fn has_test(source: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let mut is_marked = false;
    source.lines().map(str::trim_start).any(|line| {
        let found = is_marked && line.starts_with(&head);
        // Comments and further attributes may stand between.
        is_marked = line.starts_with("#[test]") || is_marked && line.starts_with(['#', '/']);
        found
    })
}

#[test]
fn every_test_that_is_named_is_there() {
    let root = tidy::root();
    let page = fs::read_to_string(root.join("docs/cases.md")).expect("the page");
    let mut wrong = Vec::new();
    let mut rows = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| S-")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [case, .., tests] = cells.as_slice() else { panic!("a row without cells: {row}") };
        rows.push((*case).to_owned());
        let mut count = 0;
        for named in quoted(tests) {
            count += 1;
            let found = named.split_once("::").is_some_and(|(path, name)| {
                let source = fs::read_to_string(root.join(path)).unwrap_or_default();
                has_test(&source, name)
            });
            if !found {
                wrong.push(format!("{case}: there is no test {named}"));
            }
        }
        if count == 0 || cells.len() != 4 {
            wrong.push(format!("{case}: needs four cells and a test"));
        }
    }
    assert!(wrong.is_empty(), "docs/cases.md:\n{}", wrong.join("\n"));
    assert!(rows.len() > 40, "only {} rows", rows.len());
    assert!(rows.is_sorted(), "rows go by their numbers");
}
