//! Reads `.properties` text by the rules of Java's `Properties.load`, from UTF-8.
//! Splits and unescapes only; what a key means is `load.rs`.

use std::str::Chars;

/// One `key=value` and the number of the line on which it begins, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    pub key: String,
    pub value: String,
    pub line: usize,
}

/// A `\u` escape that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadEscape {
    pub line: usize,
}

/// All properties in order; later ones with the same key are kept, too.
pub fn parse(text: &str) -> Result<Vec<Property>, BadEscape> {
    let mut found = Vec::new();
    for (line, content) in logical_lines(text) {
        let (key, value) = split_key(&content);
        let unescape = |part| unescape(part).ok_or(BadEscape { line });
        found.push(Property { key: unescape(key)?, value: unescape(value)?, line });
    }
    Ok(found)
}

const BLANK: [char; 3] = [' ', '\t', '\u{c}'];

/// Lines without comments and blank ones, continuations joined, escapes still in place.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, natural) in natural_lines(text).enumerate() {
        let trimmed = natural.trim_start_matches(BLANK);
        if open.is_none() && (trimmed.is_empty() || trimmed.starts_with(['#', '!'])) {
            continue;
        }
        let (first, mut content) = open.take().unwrap_or((index + 1, String::new()));
        match trimmed.strip_suffix('\\') {
            Some(head) if continues(trimmed) => {
                content.push_str(head);
                open = Some((first, content));
            }
            _ => {
                content.push_str(trimmed);
                lines.push((first, content));
            }
        }
    }
    lines.extend(open);
    lines.retain(|(_, content)| !content.is_empty());
    lines
}

/// Lines end with LF, CR or CR LF.
fn natural_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// An odd number of backslashes at the end: the last one is not itself escaped.
fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

/// The key ends at the first unescaped `=`, `:` or blank; one such sign and the blanks around
/// it belong to neither side.
fn split_key(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let mut end = line.len();
    for (at, letter) in line.char_indices() {
        if escaped {
            escaped = false;
        } else if letter == '\\' {
            escaped = true;
        } else if letter == '=' || letter == ':' || BLANK.contains(&letter) {
            end = at;
            break;
        }
    }
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(BLANK);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, rest.trim_start_matches(BLANK))
}

/// `None` for a bad `\u` escape.
fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut units: Vec<u16> = Vec::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let plain = if letter == '\\' {
            match letters.next() {
                Some('u') => {
                    units.push(hex_unit(&mut letters)?);
                    continue;
                }
                Some('t') => Some('\t'),
                Some('n') => Some('\n'),
                Some('r') => Some('\r'),
                Some('f') => Some('\u{c}'),
                other => other,
            }
        } else {
            Some(letter)
        };
        flush_units(&mut units, &mut out)?;
        out.extend(plain);
    }
    flush_units(&mut units, &mut out)?;
    Some(out)
}

/// Escapes name UTF-16 units, so a pair of them may make one character.
fn flush_units(units: &mut Vec<u16>, out: &mut String) -> Option<()> {
    out.push_str(&String::from_utf16(units).ok()?);
    units.clear();
    Some(())
}

fn hex_unit(letters: &mut Chars<'_>) -> Option<u16> {
    let mut unit = 0;
    for _ in 0..4 {
        unit = unit * 16 + letters.next()?.to_digit(16)?;
    }
    u16::try_from(unit).ok()
}
