use clap::Args;
use keyward::Code;
use keyward::registry::Run;

use crate::command::sync::{seconds, write_problems};
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::queues::Paging;
use crate::registries::{Reach, short};
use crate::table::Table;

/// List the runs of a registry, the newest first, or show one
///
/// On a terminal one line each: id, when it began, how it ended, who wanted it, the commits, what it
/// added, updated and deleted, what it left alone, and how long it took. When a program reads it, or with
/// --json, JSON lines with everything.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry runs policies
  keyward registry runs policies --limit 1 --json | jq .errors
  keyward registry runs policies 001767628800000-5b1f0c5e8a3d2c4e"#)]
pub struct Arguments {
    /// The registry
    name: String,
    /// The id of one run, to see also what it left alone
    run: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { name, run, mut paging } = arguments;
    let registry = reach.to_read(&name, output).await?;
    if let Some(id) = run {
        let Some(run) = registry.run(&id).await? else {
            let message = format!("the registry {name} has no run {id}");
            return Err(Failure::new(Code::NotFound, message)
                .hint("Runs are kept for a time only (runs_kept of the registry's settings)."));
        };
        if output.json_lines() {
            return output.write_json(&run);
        }
        let mut table = Table::default();
        add(&run, &mut table);
        table.write("", output)?;
        return write_problems(&run.errors, run.error_count, output);
    }
    loop {
        let page = registry.runs(paging.after.as_deref(), paging.limit()).await?;
        let mut table = Table::default();
        for run in &page.items {
            match output.json_lines() {
                true => output.write_json(run)?,
                false => add(run, &mut table),
            }
        }
        table.write("", output)?;
        if !paging.go_on(page.next.as_deref(), output)? {
            return Ok(());
        }
    }
}

fn add(run: &Run, table: &mut Table) {
    let Run { added, updated, deleted, .. } = run;
    let commits = match (run.previous_commit.as_deref(), run.commit.as_deref()) {
        (Some(from), Some(to)) if from != to => format!("{} → {}", short(from), short(to)),
        (_, Some(to)) => short(to).to_owned(),
        (_, None) => "-".to_owned(),
    };
    let left = match run.error_count {
        0 => String::new(),
        count => format!("{count} left alone"),
    };
    table.row([
        &run.id,
        &run.started_at,
        run.status.as_str(),
        run.trigger.as_str(),
        &commits,
        &format!("+{added} ~{updated} -{deleted}"),
        &seconds(run.duration_ms),
        &left,
    ]);
}
