//! What loading a configuration has to say: remarks, and errors that name key, value and place.

use std::fmt;

/// The longest text of a refusal, in bytes. Texts quote keys and values, which may be huge.
const TEXT_MAX: usize = 400;

/// Cuts a text for a client to a length that every answer can hold.
pub(super) fn clip(mut text: String) -> String {
    if text.len() > TEXT_MAX {
        let end = (0..=TEXT_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// Where a setting was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a file, counted from 1.
    Line { file: String, line: usize },
    /// The command line.
    Override,
    /// Nowhere: a default, or several settings together.
    Nowhere,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line { file, line } => write!(out, "{file}:{line}: "),
            Place::Override => out.write_str("--override: "),
            Place::Nowhere => Ok(()),
        }
    }
}

/// A remark to be logged at start; nothing is wrong enough to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub place: Place,
    pub key: String,
    /// Follows the key: "is unknown; did you mean ...".
    pub text: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{} {}", self.place, self.key, self.text)
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub place: Place,
    pub key: String,
    /// As written; `None` for passwords and where no value was given.
    pub value: Option<String>,
    /// Follows key and value: "must be at least 1".
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.place, self.key)?;
        if let Some(value) = &self.value {
            write!(out, "={value}")?;
        }
        write!(out, ": {}", self.text)
    }
}

/// All that is wrong with a configuration; never empty. One problem a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                out.write_str("\n")?;
            }
            problem.fmt(out)?;
        }
        Ok(())
    }
}
