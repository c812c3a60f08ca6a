//! How a change ended, told.

use keyward::records::{Precondition, Written};
use keyward::{Code, Version};
use serde::Serialize;

use super::shown;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// What `--if-version` and `--if-absent` ask for.
pub fn expected(version: Option<&str>, absent: bool) -> Precondition {
    match version {
        Some(version) => Precondition::Version(Version::parse(version)),
        None if absent => Precondition::Absent,
        None => Precondition::Any,
    }
}

#[derive(Serialize)]
struct Line<'l> {
    namespace: &'l str,
    key: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    outcome: &'static str,
}

/// Tells it, or why nothing was changed.
pub fn tell(
    namespace: &str,
    key: &str,
    expected: &Precondition,
    written: Written,
    output: &mut Output,
) -> Result {
    let (outcome, version) = match written {
        Written::Applied { version, created: true } => ("created", Some(version)),
        Written::Applied { version, created: false } => ("replaced", Some(version)),
        Written::Removed => ("deleted", None),
        Written::Unchanged { version: Some(version) } => ("unchanged", Some(version)),
        Written::Unchanged { version: None } => ("absent", None),
        Written::Conflicted { current } => return Err(refusal(key, expected, current.as_ref())),
    };
    if output.json() {
        let version = version.map(|version| version.to_string());
        return output.write_json(&Line { namespace, key, version, outcome });
    }
    let key = shown::key(key);
    match version {
        Some(version) if outcome == "unchanged" => {
            writeln!(output, "{key}  unchanged, version {version}")
        }
        Some(version) => writeln!(output, "{key}  version {version}"),
        None if outcome == "absent" => writeln!(output, "{key}  was not there"),
        None => writeln!(output, "{key}  {outcome}"),
    }
}

/// That an entry is not there.
pub fn absent(namespace: &str, key: &str) -> Failure {
    let message = format!("{} is not there in {namespace}", shown::key(key));
    Failure::new(Code::NotFound, message)
}

fn refusal(key: &str, expected: &Precondition, current: Option<&Version>) -> Failure {
    let key = shown::key(key);
    let message = match (expected, current) {
        (Precondition::Version(version), Some(current)) => {
            format!("{key} is at version {current}, not {version}")
        }
        (Precondition::Version(version), None) => {
            format!("{key} is not there, so it is not at version {version}")
        }
        (_, Some(current)) => format!("{key} is there already, at version {current}"),
        (_, None) => format!("{key} is not there"),
    };
    Failure::new(Code::PreconditionFailed, message)
        .hint("Nothing was written. Read the entry again (agent get --meta), then decide.")
}
