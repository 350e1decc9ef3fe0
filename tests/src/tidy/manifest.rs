//! Who may depend on whom, read from the `Cargo.toml` files.

use super::{Complaint, TextFile};

/// Our crates, each with those of ours that it may use. The chain of the architecture, as a table.
const CHAIN: [(&str, &[&str]); 6] = [
    ("protocol-compat", &[]),
    ("storage", &["protocol-compat"]),
    ("kraft", &["protocol-compat", "storage"]),
    ("broker", &["protocol-compat", "storage", "kraft"]),
    ("tests", &["protocol-compat", "storage", "kraft", "broker"]),
    ("compat-tests", &[]),
];

/// Crates from outside that only some of ours may use.
const RESERVED: [(&str, &[&str]); 2] =
    [("rdkafka", &["compat-tests"]), ("tokio", &["broker", "tests", "compat-tests"])];

/// Complaints about the dependencies of one package.
pub fn check(package: &str, file: &TextFile) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut complain = |line, advice| {
        complaints.push(Complaint { path: file.path.clone(), line, advice });
    };
    let Some((_, allowed)) = CHAIN.iter().find(|(name, _)| *name == package) else {
        complain(0, format!("package {package} is not in the chain of tests/src/tidy/manifest.rs"));
        return complaints;
    };
    for (line, name) in dependencies(&file.text) {
        let ours = CHAIN.iter().any(|(ours, _)| *ours == name);
        if ours && !allowed.contains(&name.as_str()) {
            let advice = "move what both need down the chain";
            complain(line, format!("{package} must not depend on {name}: {advice}"));
        }
        let reserved = RESERVED.iter().find(|(reserved, _)| *reserved == name);
        if let Some((_, users)) = reserved.filter(|(_, users)| !users.contains(&package)) {
            complain(line, format!("{name} is only for {}; take it out", users.join(", ")));
        }
    }
    complaints
}

/// The names under every table of dependencies, with their lines.
fn dependencies(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (at, line) in text.lines().map(str::trim).enumerate() {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside = table.ends_with("dependencies");
            if let Some((_, name)) = table.split_once("dependencies.") {
                found.push((at + 1, name.to_owned()));
            }
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or(line);
            found.push((at + 1, name.to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{TextFile, check};

    fn complaints(package: &str, dependencies: &str) -> usize {
        let text = format!("[package]\nname = \"x\"\n{dependencies}\n[features]\ntokio = []\n");
        check(package, &TextFile { path: String::from("x"), text }).len()
    }

    #[test]
    fn only_the_chain_is_allowed() {
        assert_eq!(complaints("kraft", "[dependencies]\nstorage.workspace = true"), 0);
        assert_eq!(complaints("storage", "[dependencies]\nkraft.workspace = true"), 1);
        assert_eq!(complaints("storage", "[dev-dependencies]\nkraft = { path = \"..\" }"), 1);
        assert_eq!(complaints("compat-tests", "[dependencies.broker]\npath = \"..\""), 1);
        assert_eq!(complaints("kraft", "[target.'cfg(unix)'.dependencies]\ntokio = \"1\""), 1);
        assert_eq!(complaints("broker", "[dependencies]\n# rdkafka\ntokio = \"1\""), 0);
        assert_eq!(complaints("broker", "[dependencies]\nrdkafka = \"1\""), 1);
        assert_eq!(complaints("newcomer", ""), 1);
    }
}
