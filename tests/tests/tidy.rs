//! The repository keeps its own rules. Each failure names file and line, and says what to do.

use tests::tidy::{self, Complaint, TextFile, manifest, rules};

/// What may lie at the root, beside names with a dot and what git ignores.
const ROOT: [&str; 14] = [
    "Cargo.toml",
    "Cargo.lock",
    "broker",
    "protocol-compat",
    "storage",
    "kraft",
    "tests",
    "compat-tests",
    "deploy",
    "docs",
    "README.md",
    "Makefile",
    "LICENSE",
    "ARCHITECTURE.md",
];

/// Known to the platform that shows the repository.
const ROOT_BY_CUSTOM: [&str; 1] = ["CONTRIBUTING.md"];

#[track_caller]
fn none(mut complaints: Vec<Complaint>) {
    complaints.sort();
    let lines: Vec<String> = complaints.iter().map(Complaint::to_string).collect();
    assert!(lines.is_empty(), "{} broken rules:\n{}\n", lines.len(), lines.join("\n"));
}

#[test]
fn nothing_strange_lies_at_the_root() {
    let root = tidy::root();
    let ignored = tidy::ignored_names(&root);
    let strange = tidy::names(&root).into_iter().filter(|name| {
        let known = ROOT.contains(&name.as_str()) || ROOT_BY_CUSTOM.contains(&name.as_str());
        !known && !name.starts_with('.') && !ignored.contains(name)
    });
    let advice = "has no place at the root: put it into docs/, deploy/ or a package";
    let complaint = |path| Complaint { path, line: 0, advice: advice.to_owned() };
    none(strange.map(complaint).collect());
}

#[test]
fn dependencies_point_down_the_chain() {
    let files = tidy::text_files(&tidy::root());
    let packages = files.iter().filter_map(|file| {
        let package = file.path.strip_suffix("/Cargo.toml")?;
        // The fuzzers are a workspace of their own.
        (!package.contains('/')).then_some((package, file))
    });
    none(packages.flat_map(|(package, file)| manifest::check(package, file)).collect());
}

#[test]
fn sources_keep_the_rules() {
    let files: Vec<TextFile> = tidy::text_files(&tidy::root());
    assert!(files.len() > 100, "only {} files were found", files.len());
    none(files.iter().flat_map(rules::check).collect());
}
