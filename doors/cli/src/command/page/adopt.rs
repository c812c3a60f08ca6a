use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use clap::Args;
use indicatif::HumanCount;
use keyward::agreements::Adopted;

use crate::agreements::Desk;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Take over agreements that a Forge app wrote
///
/// Reads the keys of the app in the workspace's store: {page}:policy:…, {page}:issue:…, job:…, system:purged and
/// the lock catalog at {page}. Documents and issues are rewritten in their place, with everything they say; jobs,
/// lock catalogs and the time of the last purge move to system:adopted:…. With --export, the entries are read
/// from a file instead, a line {"key":…,"value":…} for each; what the store has already is never overwritten.
///
/// Safe to interrupt and to repeat. Stop the app first. Exits with 10 if an entry could not be taken over: such
/// entries stay as they are, and are named.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward page adopt --plan
  keyward page adopt --apply
  keyward page adopt --export forge.ndjson --apply"#)]
pub struct Arguments {
    /// Show what would be taken over
    #[arg(long, visible_alias = "dry-run", conflicts_with = "apply")]
    plan: bool,
    /// Take it over
    #[arg(long)]
    apply: bool,
    /// File to read the app's entries from, as NDJSON [default: the workspace's store]
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
}

impl Arguments {
    /// Whether the store may be made.
    pub fn writes(&self) -> bool {
        self.apply
    }
}

pub async fn run(arguments: Arguments, desk: &Desk, output: &mut Output) -> Result {
    let Arguments { plan, apply, export } = arguments;
    if !plan && !apply {
        return Err(Failure::invalid("pass --plan to preview or --apply to take over"));
    }
    let Desk::Here(here) = desk else {
        let message = "a server takes nothing over: run this where the store can be opened";
        return Err(
            Failure::invalid(message).hint("Leave out --server, and name the store with -s.")
        );
    };
    let workspace = here.workspace();
    let adopted = match &export {
        Some(path) => {
            File::open(path).map_err(|error| {
                Failure::file(format_args!("cannot read {}", path.display()), &error)
            })?;
            let open = || File::open(path).map(BufReader::new);
            workspace.adopt_export(open, apply).await?
        }
        None => workspace.adopt(apply).await?,
    };
    tell(&adopted, apply, output)?;
    if adopted.left > 0 { Err(Failure::told(Exit::Differs)) } else { Ok(()) }
}

fn tell(adopted: &Adopted, apply: bool, output: &mut Output) -> Result {
    if output.json() {
        return output.write_json(adopted);
    }
    let done = if apply { "took over" } else { "would take over" };
    let counted = [
        (adopted.policies, "policy", "policies"),
        (adopted.issues, "issue", "issues"),
        (adopted.jobs, "job", "jobs"),
        (adopted.locks, "lock catalog", "lock catalogs"),
        (u64::from(adopted.purged), "time of the last purge", "times of the last purge"),
    ];
    let counted: Vec<String> = counted
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| {
            format!("{} {}", HumanCount(count), if count == 1 { one } else { many })
        })
        .collect();
    match counted.is_empty() {
        true => writeln!(output, "nothing to take over")?,
        false => writeln!(output, "{done}: {}", counted.join(", "))?,
    }
    for (count, what) in [
        (adopted.already, "already taken over"),
        (adopted.unknown, "left alone, because nobody knows their keys here"),
        (adopted.left, "could not be taken over"),
    ] {
        if count > 0 {
            writeln!(output, "{}: {}", what, HumanCount(count))?;
        }
    }
    for problem in &adopted.problems {
        writeln!(output, "  {}: {}", problem.key, problem.reason)?;
    }
    if !apply && adopted.total() > 0 {
        writeln!(output, "nothing was written; --apply does it")?;
    }
    Ok(())
}
