use clap::Args;
use keyward::registry::Migrated;

use crate::command::sync::{counted, write_problems};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::progress::Progress;
use crate::registries::Reach;
use crate::table::Table;

/// Bring entries of version 1 to the form of today
///
/// Entries that are kept under their title are moved to the name of the file that has it, and members that
/// are no longer used are taken out of all entries once their time is over (deprecated_kept of the
/// registry's settings). Syncs do the same by and by; this does it at once.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry migrate policies --dry-run
  keyward registry migrate policies"#)]
pub struct Arguments {
    /// The registry
    name: String,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { name, dry_run } = arguments;
    let registry = reach.existing(&name).await?;
    let looking = Progress::working("looking at the entries", output);
    let migrated = registry.migrate(dry_run).await?;
    drop(looking);
    if output.json() {
        output.write_json(&migrated)?;
    } else {
        tell(&migrated, dry_run, output)?;
    }
    match migrated.problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::told(Exit::Differs)),
    }
}

fn tell(migrated: &Migrated, dry_run: bool, output: &mut Output) -> Result {
    let Migrated { scanned, moved, cleaned, problems, .. } = migrated;
    let mut table = Table::default();
    for (title, name) in moved {
        table.row([title, "→", name]);
    }
    table.write("", output)?;
    write_problems(problems, problems.len() as u64, output)?;
    let would = if dry_run { "would be " } else { "" };
    let moved = moved.len();
    writeln!(
        output,
        "{}: {moved} {would}moved, {cleaned} {would}cleaned",
        match scanned {
            1 => "1 entry".to_owned(),
            scanned => counted(*scanned, "entrie"),
        }
    )
}
