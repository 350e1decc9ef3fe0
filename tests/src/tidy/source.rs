//! What is code in a Rust file: comments and literals are blanked out, tests are marked.
//!
//! A scanner, not a parser: it knows strings, characters, comments and braces, which is enough for
//! rules on names and lengths.

/// A Rust file, ready for rules.
pub struct Source {
    /// The text with comments, strings and characters as blanks; the same lines, fewer surprises.
    pub code: String,
    /// Where each line begins.
    line_starts: Vec<usize>,
    /// For each line (from 0), whether it belongs to a test.
    test_lines: Vec<bool>,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Source {
        let code = blanked(text);
        let ends = code.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts: Vec<usize> = std::iter::once(0).chain(ends).collect();
        let test_lines = vec![is_test_path(path); line_starts.len()];
        let mut source = Source { code, line_starts, test_lines };
        source.mark_tests();
        source
    }

    /// Lines of code outside tests, counted from 1.
    pub fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.lines().enumerate();
        lines.filter(|(at, _)| !self.is_test(*at)).map(|(at, line)| (at + 1, line))
    }

    fn mark_tests(&mut self) {
        for mark in ["#[cfg(test)]", "#[test]"] {
            for at in self.code.match_indices(mark).map(|(at, mark)| at + mark.len()) {
                let Some(end) = item_end(&self.code, at) else { continue };
                for line in line_of(&self.line_starts, at)..=line_of(&self.line_starts, end) {
                    self.test_lines[line] = true;
                }
            }
        }
    }

    fn is_test(&self, at: usize) -> bool {
        self.test_lines.get(at).copied().unwrap_or(false)
    }

    /// Functions outside tests: the line of `fn` (from 1), the name, how many lines.
    pub fn functions(&self) -> Vec<(usize, String, usize)> {
        let mut found = Vec::new();
        for at in words(&self.code, "fn") {
            let line = line_of(&self.line_starts, at);
            let name: String = self.code[at + 2..]
                .trim_start()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            if name.is_empty() || self.is_test(line) {
                continue;
            }
            if let Some(end) = item_end(&self.code, at) {
                found.push((line + 1, name, line_of(&self.line_starts, end) - line + 1));
            }
        }
        found
    }

    /// Every path that a `use` outside tests names, groups taken apart, with its line.
    pub fn imports(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for at in words(&self.code, "use") {
            let line = line_of(&self.line_starts, at);
            let rest = &self.code[at + 3..];
            let Some(end) = rest.find(';') else { continue };
            if !self.is_test(line) {
                let tree: String = rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
                expand(String::new(), &tree, &mut |path| found.push((line + 1, path)));
            }
        }
        found
    }
}

/// Whether a whole file is test code: it lies in a `tests` folder of a crate, or is named so.
pub fn is_test_path(path: &str) -> bool {
    let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
    // The first folder is the package; the one named `tests` holds product code, too.
    let mut inner = dirs.split('/').skip(1);
    name.contains("tests") || inner.any(|dir| dir == "tests" || dir.ends_with("_tests"))
}

/// Where `word` stands alone.
pub fn words<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// The line that holds a byte, counted from 0.
fn line_of(line_starts: &[usize], at: usize) -> usize {
    line_starts.partition_point(|start| *start <= at) - 1
}

/// Takes `a::{b, c::{d, e}}` apart.
fn expand(prefix: String, tree: &str, found: &mut impl FnMut(String)) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        found(format!("{prefix}{path}"));
        return;
    };
    let prefix = format!("{prefix}{}", &tree[..open]);
    let inner = tree[open + 1..].trim_end().trim_end_matches('}');
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(prefix.clone(), &inner[start..at], found);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner[start..].trim().is_empty() {
        let mut last = inner[start..].to_owned();
        last.extend(std::iter::repeat_n('}', depth.max(0) as usize));
        expand(prefix, &last, found);
    }
}

/// The end of the item that starts at `at`: its closing brace, or its semicolon.
fn item_end(code: &str, at: usize) -> Option<usize> {
    let (mut braces, mut others) = (0_i32, 0_i32);
    for (offset, c) in code[at..].char_indices() {
        match c {
            '(' | '[' => others += 1,
            ')' | ']' => others -= 1,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces == 0 {
                    return Some(at + offset);
                }
            }
            ';' if braces == 0 && others == 0 => return Some(at + offset),
            _ => {}
        }
    }
    None
}

/// Blanks comments and the insides of literals; newlines stay.
fn blanked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let word = before.is_alphanumeric() || before == '_';
        let len = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            'r' | 'b' | 'c' if !word => raw_string(rest),
            '\'' => character(rest),
            _ => 0,
        };
        let (literal, after) = rest.split_at(len.max(c.len_utf8()));
        if len == 0 {
            out.push(c);
        } else {
            out.extend(literal.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        before = c;
        rest = after;
    }
    out
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `r"..."`, `br#"..."#`, `b"..."`, `b'.'`; 0 for a plain word.
fn raw_string(text: &str) -> usize {
    let quote = text.find(|c: char| !matches!(c, 'r' | 'b' | 'c' | '#')).unwrap_or(text.len());
    let (head, rest) = text.split_at(quote);
    if quote > 5 || !rest.starts_with('"') {
        return if head == "b" && rest.starts_with('\'') { 1 + character(rest) } else { 0 };
    }
    if !head.contains('r') {
        return quote + string(rest);
    }
    let end = format!("\"{}", "#".repeat(head.matches('#').count()));
    rest[1..].find(&end).map_or(text.len(), |at| quote + 1 + at + end.len())
}

/// A character literal; 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(0, |at| at + 4),
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

#[cfg(test)]
mod tests;
