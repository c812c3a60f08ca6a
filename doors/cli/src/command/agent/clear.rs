use clap::Args;
use indicatif::HumanCount;
use keyward::agents::{Namespace, UserData};
use serde::Serialize;

use super::namespace::InNamespace;
use super::reach::Reach;
use super::shown;
use crate::command::del::confirm;
use crate::failure::Result;
use crate::output::Output;
use crate::progress::Progress;

/// Delete all entries of a namespace
///
/// Or those whose keys start with a text. First they are counted, then you are asked, or told to repeat
/// the command with --yes. Their history stays.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent clear -n scratch
  keyward agent clear src/ -n files:apache/repo --dry-run
  keyward agent clear -n scratch --yes --json"#)]
pub struct Arguments {
    /// Only entries whose keys start with this
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,
    #[command(flatten)]
    place: InNamespace,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Say how many there are, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

#[derive(Serialize)]
struct Cleared<'n> {
    namespace: &'n str,
    #[serde(skip_serializing_if = "str::is_empty")]
    prefix: &'n str,
    deleted: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    would_delete: Option<usize>,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { prefix, place, yes, dry_run } = arguments;
    let work = async |user: UserData, output: &mut Output| {
        let namespace = user.use_namespace(&place.namespace)?;
        let found = match yes {
            true => None,
            false => Some(count(&namespace, &prefix, output).await?),
        };
        if dry_run {
            return tell(&namespace, &prefix, 0, found, output);
        }
        if let Some(found) = found.filter(|found| *found > 0) {
            let what = format!("{} {}", counted(found), within(&namespace, &prefix));
            confirm(&what, output)?;
        }
        let deleting = Progress::working("deleting", output);
        // Entries that come after the question were not confirmed.
        let deleted = namespace.clear_up_to(&prefix, found.unwrap_or(usize::MAX)).await?;
        drop(deleting);
        tell(&namespace, &prefix, deleted, None, output)
    };
    reach.to_read(output, work).await
}

async fn count(namespace: &Namespace, prefix: &str, output: &Output) -> Result<usize> {
    let _counting = Progress::working("counting", output);
    Ok(namespace.count(prefix).await?)
}

fn tell(
    namespace: &Namespace,
    prefix: &str,
    deleted: usize,
    would_delete: Option<usize>,
    output: &mut Output,
) -> Result {
    if output.json() {
        let namespace = namespace.name();
        return output.write_json(&Cleared { namespace, prefix, deleted, would_delete });
    }
    let place = within(namespace, prefix);
    match would_delete {
        Some(found) => writeln!(output, "would delete {} {place}", counted(found)),
        None => writeln!(output, "deleted {} {place}", counted(deleted)),
    }
}

fn within(namespace: &Namespace, prefix: &str) -> String {
    let name = shown::key(namespace.name());
    match prefix {
        "" => format!("of {name}"),
        prefix => format!("of {name} with keys that start with {}", shown::key(prefix)),
    }
}

fn counted(entries: usize) -> String {
    match entries {
        1 => "1 entry".to_owned(),
        entries => format!("{} entries", HumanCount(entries as u64)),
    }
}
