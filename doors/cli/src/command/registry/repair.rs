use clap::Args;
use keyward::registry::Repaired;

use crate::command::sync::counted;
use crate::failure::Result;
use crate::output::Output;
use crate::progress::Progress;
use crate::registries::Reach;

/// Compare what an export has with the registry, and put it right
///
/// Files that are missing or other than they should be are written, and those of policies that are gone are
/// removed.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry repair policies site"#)]
pub struct Arguments {
    /// The registry
    name: String,
    /// The consumer, which is an export
    consumer: String,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { name, consumer } = arguments;
    let registry = reach.existing(&name).await?;
    let comparing = Progress::working("comparing", output);
    let repaired = registry.repair(&consumer).await?;
    drop(comparing);
    if output.json() {
        return output.write_json(&repaired);
    }
    let Repaired { checked, written, removed, .. } = repaired;
    let checked = match checked {
        1 => "1 policy".to_owned(),
        checked => format!("{checked} policies"),
    };
    let (written, removed) = (counted(written, "file"), counted(removed, "file"));
    writeln!(output, "{consumer}: compared {checked}, wrote {written}, removed {removed}")
}
