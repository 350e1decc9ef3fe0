//! Each rule catches what it is for, and nothing else.

use super::{TextFile, check};

/// `want` lists the lines that are complained about.
fn check_lines(path: &str, text: &str, want: &[usize]) {
    let file = TextFile { path: path.to_owned(), text: format!("//! Header.\n{text}") };
    let complaints = check(&file);
    let lines: Vec<usize> = complaints.iter().map(|complaint| complaint.line).collect();
    assert_eq!(lines, want, "{path}: {text}\n{complaints:#?}");
}

#[test]
fn banned_calls_are_found_outside_their_files() {
    let ours = "broker/src/apis/x.rs";
    check_lines(ours, "use std::fs;", &[2]);
    check_lines(ours, "use std::{\n    io, fs::File,\n};", &[2]);
    check_lines(ours, "fn a() { std::fs::read(p); }", &[2]);
    check_lines(ours, "use std::io;\nfn a() { Instant::now(); }", &[3]);
    check_lines(ours, "fn a() { tokio::time::sleep(x); }", &[2]);
    check_lines(ours, "fn a() { tokio::spawn(x); }", &[2]);
    check_lines(ours, "fn a() { unsafe { b() } }", &[2]);
    check_lines(ours, "// std::fs\nconst A: &str = \"std::fs\";", &[]);
    check_lines(ours, "#[cfg(test)]\nmod tests {\n    use std::fs;\n}", &[]);
    check_lines(ours, "use tokio::sync::Notify;", &[]);
    check_lines("broker/src/env/real.rs", "use std::fs;\nfn a() { unsafe { b() } }", &[]);
    check_lines("storage/src/disk/real.rs", "use std::fs;", &[]);
    check_lines("storage/src/disk/real.rs", "fn a() { Instant::now(); }", &[2]);
    check_lines("storage/src/log/tests/x.rs", "use std::fs;", &[]);
    check_lines("tests/src/x.rs", "use std::fs;", &[]);
}

#[test]
fn lengths_have_caps() {
    let lines = |count: usize| "const A: u8 = 0;\n".repeat(count);
    check_lines("kraft/src/x.rs", &lines(799), &[]);
    check_lines("kraft/src/x.rs", &lines(800), &[0]);
    check_lines("kraft/src/x/tests.rs", &lines(800), &[]);
    check_lines("kraft/src/x.rs", &format!("// {}", "é".repeat(97)), &[]);
    check_lines("kraft/src/x.rs", &format!("// {}", "é".repeat(98)), &[2]);
    let function = |count: usize| format!("fn a() {{\n{}}}", "    b();\n".repeat(count - 2));
    check_lines("kraft/src/x.rs", &function(70), &[]);
    check_lines("kraft/src/x.rs", &function(71), &[2]);
    check_lines("kraft/tests/x.rs", &function(71), &[]);
}

#[test]
fn leftovers_are_found_in_tests_too() {
    check_lines("kraft/tests/x.rs", "fn a() { todo!() }", &[2]);
    check_lines("kraft/tests/x.rs", "fn a() { dbg!(b); }", &[2]);
    check_lines("kraft/tests/x.rs", "#[test]\n#[ignore]\nfn a() {}", &[3]);
    check_lines("kraft/src/x.rs", concat!("// TO", "DO: b"), &[2]);
    check_lines("docs/x.md", concat!("FIX", "ME"), &[2]);
    check_lines("docs/x.md", concat!("in /wo", "rk/tree"), &[2]);
    check_lines("docs/x.txt", concat!("in /ro", "ot/tree"), &[2]);
}

#[test]
fn a_source_begins_with_its_header() {
    let file = |text: &str| TextFile { path: "kraft/src/x.rs".into(), text: text.into() };
    assert_eq!(check(&file("use a::b;\n")).len(), 1);
    assert_eq!(check(&file("//! Owns x.\n")).len(), 0);
}
