//! How a change ended, told.

use keyward::records::{Precondition, Written};
use keyward::{Code, Key, Version};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::output::Output;

/// What `--if-match` asks for.
pub fn if_match(version: Option<&str>) -> Precondition {
    version.map_or(Precondition::Any, |version| Precondition::Version(Version::parse(version)))
}

#[derive(Serialize)]
struct Line {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    outcome: &'static str,
}

/// Tells it, or why nothing was changed.
pub fn tell(key: &Key, expected: &Precondition, written: Written, output: &mut Output) -> Result {
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
        return output.write_json(&Line { key: key.to_string(), version, outcome });
    }
    match version {
        Some(version) if outcome == "unchanged" => {
            writeln!(output, "{key}  unchanged, version {version}")
        }
        Some(version) => writeln!(output, "{key}  version {version}"),
        None if outcome == "absent" => writeln!(output, "{key}  was not there"),
        None => writeln!(output, "{key}  {outcome}"),
    }
}

/// Refuses what was not made because of its condition.
pub fn accepted(key: &Key, expected: &Precondition, written: &Written) -> Result {
    match written {
        Written::Conflicted { current } => Err(refusal(key, expected, current.as_ref())),
        _ => Ok(()),
    }
}

fn refusal(key: &Key, expected: &Precondition, current: Option<&Version>) -> Failure {
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
        .hint("Nothing was written. Read the record again (record get --meta), then decide.")
}
