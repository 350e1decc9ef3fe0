//! The `match` setting of a client-metrics subscription (KIP-714): which clients it means.

use super::value::elements;

/// What of a client a pattern looks at.
const SELECTORS: [&str; 6] = [
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// Whether every element is `selector=pattern` with a known selector and a regular expression
/// that can be read. The error says which is not and why.
pub fn check(text: &str) -> Result<(), String> {
    for element in elements(text) {
        let mut parts = element.split('=').map(str::trim);
        let (Some(selector), Some(pattern), None) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(format!("{element:?} must look like selector=pattern"));
        };
        if !SELECTORS.contains(&selector) {
            return Err(format!("{selector:?} must be one of {}", SELECTORS.join(", ")));
        }
        if pattern.is_empty() || regex_syntax::parse(pattern).is_err() {
            return Err(format!("{pattern:?} must be a regular expression"));
        }
    }
    Ok(())
}
