//! What the scanner takes for code, tests, functions and imports.

use super::Source;

fn check_code(text: &str, want: &str) {
    let code = Source::new("a/src/b.rs", text).code;
    let words: Vec<&str> = code.split_whitespace().collect();
    assert_eq!(words.join(" "), want, "{text}");
}

#[test]
fn comments_and_literals_are_no_code() {
    check_code("a // b\nc", "a c");
    check_code("a /* b /* c */ d */ e", "a e");
    check_code(r#"a "b // \" c" d"#, "a d");
    check_code(r##"a r#"b " c"# d"##, "a d");
    check_code(r#"a b"x" b'y' 'z' '\'' '\n' '\u{1F600}' d"#, "a d");
    check_code("fn a<'b>(c: &'b str)", "fn a<'b>(c: &'b str)");
    check_code("crab \"x\"", "crab");
    check_code("r + b", "r + b");
}

fn check_functions(text: &str, want: &[(usize, &str, usize)]) {
    let found = Source::new("a/src/b.rs", text).functions();
    let found: Vec<_> =
        found.iter().map(|(line, name, lines)| (*line, name.as_str(), *lines)).collect();
    assert_eq!(found, want, "{text}");
}

#[test]
fn functions_are_measured_and_tests_are_not() {
    check_functions("fn a() {\n}\n", &[(1, "a", 2)]);
    check_functions("trait T {\n fn a(x: [u8; 2]);\n fn b() {}\n}", &[(2, "a", 1), (3, "b", 1)]);
    check_functions("type A = fn(i32);\n#[cfg(test)]\nmod t {\n fn a() {}\n}\n", &[]);
    check_functions("#[test]\nfn a() {\n}\nfn b() {\n}\n", &[(4, "b", 2)]);
    check_functions("#[cfg(test)]\nmod tests;\nfn b() {\n}\n", &[(3, "b", 2)]);
}

#[test]
fn imports_are_taken_apart() {
    let text = "use std::{fs, io::{self, Read as R}};\nuse a::b;\n#[cfg(test)]\nuse c::d;\n";
    let found = Source::new("a/src/b.rs", text).imports();
    let found: Vec<_> = found.iter().map(|(line, path)| (*line, path.as_str())).collect();
    let want = [(1, "std::fs"), (1, "std::io::self"), (1, "std::io::Read"), (2, "a::b")];
    assert_eq!(found, want);
}
