//! Rules about the repository's own text: what may be where, and how long.
//!
//! Owns the walk over the files and the complaint; `source.rs` owns what is code, comment and test
//! in a Rust file, `rules.rs` the rules on sources, `manifest.rs` the ones on dependencies.
//! `tests/tidy.rs` runs them all.

pub mod manifest;
pub mod rules;
pub mod source;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A broken rule: where, and what to do about it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Complaint {
    /// Relative to the root, with `/`.
    pub path: String,
    /// Counted from 1; 0 speaks of the whole file.
    pub line: usize,
    pub advice: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.advice),
            line => write!(f, "{}:{line}: {}", self.path, self.advice),
        }
    }
}

/// A text file of the repository.
pub struct TextFile {
    /// Relative to the root, with `/`.
    pub path: String,
    pub text: String,
}

/// The repository that this package is part of.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

/// Names at the root that git ignores.
pub fn ignored_names(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix('/')).map(str::to_owned).collect()
}

/// The names in a directory, sorted.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Every text file of the repository, without what is built or ignored.
pub fn text_files(root: &Path) -> Vec<TextFile> {
    let ignored = ignored_names(root);
    let mut files = Vec::new();
    let top = names(root).into_iter().filter(|name| !ignored.contains(name) && name != ".git");
    let mut todo: Vec<String> = top.collect();
    while let Some(path) = todo.pop() {
        let full = root.join(&path);
        if full.is_dir() {
            let inner = names(&full).into_iter().filter(|name| name != "target");
            todo.extend(inner.map(|name| format!("{path}/{name}")));
        } else if let Ok(text) = fs::read_to_string(&full) {
            files.push(TextFile { path, text });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}
