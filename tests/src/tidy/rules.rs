//! The rules on sources: banned calls, lengths, headers, markers, paths of machines.
//!
//! Words that the rules look for are put together from parts, so that this file keeps them itself.

use super::source::{Source, is_test_path, words};
use super::{Complaint, TextFile};

pub const FILE_LINES_MAX: usize = 800;
pub const FUNCTION_LINES_MAX: usize = 70;
pub const LINE_COLUMNS_MAX: usize = 100;

/// What asks the machine for something, and the files that may.
struct Ban {
    paths: &'static [&'static str],
    allowed: &'static [&'static str],
    advice: &'static str,
}

/// Files that talk to the operating system.
const OS_FILES: &[&str] = &[
    "broker/src/env/",
    "storage/src/disk/real.rs",
    "storage/src/flush/pool.rs",
    "storage/src/kv/rocks.rs",
];

const BANS: [Ban; 4] = [
    Ban {
        paths: &["std::fs", "tokio::fs"],
        allowed: OS_FILES,
        advice: "files are reached through storage::disk::Disk",
    },
    Ban {
        paths: &["Instant::now", "SystemTime::now", "tokio::time"],
        allowed: &["broker/src/env/"],
        advice: "time is an argument; in broker ask env.clock",
    },
    Ban {
        paths: &["tokio::net", "std::net::TcpListener", "std::net::TcpStream"],
        allowed: &["broker/src/env/"],
        advice: "sockets are reached through env.net",
    },
    Ban {
        paths: &["tokio::spawn", "tokio::task::spawn", "spawn_blocking", "std::thread"],
        allowed: OS_FILES,
        advice: "tasks and threads are started through env.tasks",
    },
];

/// The crates whose code runs in the simulator.
const SIMULATED: [&str; 4] = ["protocol-compat/src/", "storage/src/", "kraft/src/", "broker/src/"];

/// Where `unsafe` may be: a raw descriptor for the kernel.
const UNSAFE: [&str; 2] = ["broker/src/env/real.rs", "storage/src/disk/real.rs"];

/// All complaints about one file.
pub fn check(file: &TextFile) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let complain = &mut |line, advice| {
        complaints.push(Complaint { path: file.path.clone(), line, advice });
    };
    machine_paths(file, complain);
    if has_markers_checked(&file.path) {
        markers(&file.text, complain);
    }
    if file.path.ends_with(".rs") {
        let source = Source::new(&file.path, &file.text);
        header(&file.text, complain);
        lengths(file, &source, complain);
        leftovers(&source, complain);
        if SIMULATED.iter().any(|root| file.path.starts_with(root)) {
            banned(&file.path, &source, complain);
        }
    }
    complaints
}

fn machine_paths(file: &TextFile, complain: &mut impl FnMut(usize, String)) {
    let paths = [concat!("/wo", "rk/"), concat!("/tmp/", "bash_jobs"), concat!("/ro", "ot/")];
    if !paths.iter().any(|path| file.text.contains(path)) {
        return;
    }
    for (at, line) in file.text.lines().enumerate() {
        if let Some(path) = paths.iter().find(|path| line.contains(**path)) {
            complain(at + 1, format!("{path} is a path of one machine; say it without"));
        }
    }
}

fn has_markers_checked(path: &str) -> bool {
    // The one page that must name them.
    if path == "CONTRIBUTING.md" {
        return false;
    }
    let ends = [".rs", ".md", ".toml", ".sh", ".yml", ".yaml", "Makefile"];
    ends.iter().any(|end| path.ends_with(end))
}

fn markers(text: &str, complain: &mut impl FnMut(usize, String)) {
    let markers = [concat!("TO", "DO"), concat!("FIX", "ME")];
    for marker in markers.into_iter().filter(|marker| text.contains(marker)) {
        for (at, line) in text.lines().enumerate() {
            if words(line, marker).next().is_some() {
                complain(at + 1, format!("{marker}: do it, or write down the limit in docs/"));
            }
        }
    }
}

fn header(text: &str, complain: &mut impl FnMut(usize, String)) {
    if !text.starts_with("//! ") {
        let advice = "begin with a //! header: what the file owns and what it leaves to others";
        complain(1, advice.to_owned());
    }
}

fn lengths(file: &TextFile, source: &Source, complain: &mut impl FnMut(usize, String)) {
    for (at, line) in file.text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS_MAX {
            complain(at + 1, format!("{columns} columns, at most {LINE_COLUMNS_MAX}: wrap it"));
        }
    }
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX && !is_test_path(&file.path) {
        complain(0, format!("{lines} lines, at most {FILE_LINES_MAX}: split it by what it owns"));
    }
    for (line, name, lines) in source.functions() {
        if lines > FUNCTION_LINES_MAX {
            complain(line, format!("fn {name} has {lines} lines, at most {FUNCTION_LINES_MAX}"));
        }
    }
}

fn leftovers(source: &Source, complain: &mut impl FnMut(usize, String)) {
    for (at, line) in source.code.lines().enumerate() {
        if !line.contains('!') && !line.contains('#') {
            continue;
        }
        for name in ["todo", "unimplemented", "dbg"] {
            if words(line, name).any(|at| line[at + name.len()..].starts_with('!')) {
                complain(at + 1, format!("{name}! is for drafts: finish it"));
            }
        }
        if line.contains("#[ignore") {
            complain(at + 1, "a test that does not run proves nothing: mend or delete it".into());
        }
    }
}

fn banned(path: &str, source: &Source, complain: &mut impl FnMut(usize, String)) {
    let under = |allowed: &[&str]| allowed.iter().any(|start| path.starts_with(start));
    let imports = source.imports();
    for ban in BANS.iter().filter(|ban| !under(ban.allowed)) {
        for banned in ban.paths {
            let advice = || format!("{banned} is not for here: {}", ban.advice);
            for (line, import) in &imports {
                // Other names on the same line are found below.
                let inside = import.strip_prefix(banned);
                if inside.is_some_and(|rest| rest.is_empty() || rest.starts_with("::")) {
                    complain(*line, advice());
                }
            }
            if !source.code.contains(banned) {
                continue;
            }
            for (line, code) in source.product_lines() {
                let is_use = code.trim_start().starts_with("use ");
                if !is_use && words(code, banned).next().is_some() {
                    complain(line, advice());
                }
            }
        }
    }
    if !under(&UNSAFE) && source.code.contains("unsafe") {
        for (line, code) in source.product_lines() {
            if words(code, "unsafe").next().is_some() {
                complain(line, format!("unsafe is only for {}", UNSAFE.join(", ")));
            }
        }
    }
}

#[cfg(test)]
mod tests;
