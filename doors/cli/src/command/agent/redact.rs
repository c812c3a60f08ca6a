use clap::Args;
use keyward::agents::UserData;
use serde::Serialize;

use super::namespace::InNamespace;
use super::reach::Reach;
use super::shown;
use crate::failure::Result;
use crate::output::Output;

/// Take the value and metadata out of an earlier version, for good
///
/// Who wrote it and when stays in the history, and who took it away is added. The version that the entry
/// has now cannot be redacted: set or delete the entry first. Lines of agent log show the beginnings of
/// values, and end by themselves.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent history plan
  keyward agent redact plan 3"#)]
pub struct Arguments {
    /// The key
    key: String,
    /// The number of the version, as agent history shows it
    number: u64,
    #[command(flatten)]
    place: InNamespace,
}

#[derive(Serialize)]
struct Line<'l> {
    namespace: &'l str,
    key: &'l str,
    number: u64,
    redacted: bool,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { key, number, place } = arguments;
    let work = async |user: UserData, output: &mut Output| {
        let namespace = user.use_namespace(&place.namespace)?;
        let redacted = namespace.redact(&key, number).await?;
        if output.json() {
            let (namespace, key) = (namespace.name(), key.as_str());
            return output.write_json(&Line { namespace, key, number, redacted });
        }
        let outcome = if redacted { "redacted" } else { "had nothing to redact" };
        writeln!(output, "{}  version {number} {outcome}", shown::key(&key))
    };
    reach.existing(output, work).await
}
