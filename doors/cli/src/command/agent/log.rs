use clap::Args;
use keyward::agents::{LoggedOperation, UserData};
use serde::Serialize;

use super::paging::{Pages, Paging};
use super::reach::Reach;
use super::shown;
use crate::failure::Result;
use crate::output::Output;

/// Print what a run did, or which runs there are
///
/// Without RUN, the runs of the user that have a log, one a line. With it, the operations that were done with --run (in MCP: in a session), in the order of time: when, by which
/// agent, what, to which entry, whether there was one, and the beginning of the value. Lines are kept for
/// 30 days. As JSON lines when a program reads it, or with --json.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent log
  keyward agent log r1
  keyward agent log r1 --user ada --json | jq -r .op"#)]
pub struct Arguments {
    /// The run
    #[arg(value_name = "RUN")]
    of: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Serialize)]
struct Run<'r> {
    run: &'r str,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { of, paging } = arguments;
    let pages = paging.pages();
    let work = async |user: UserData, output: &mut Output| match of {
        Some(run) => operations(&user, &run, pages, output).await,
        None => runs(&user, pages, output).await,
    };
    reach.to_read(output, work).await
}

async fn operations(user: &UserData, run: &str, mut pages: Pages, output: &mut Output) -> Result {
    loop {
        let page = user.operations(run, pages.after(), pages.limit()).await?;
        for operation in &page.operations {
            write(operation, output)?;
        }
        if !pages.go_on(page.operations.len(), page.next, output)? {
            return Ok(());
        }
    }
}

async fn runs(user: &UserData, mut pages: Pages, output: &mut Output) -> Result {
    loop {
        let page = user.runs(pages.after(), pages.limit()).await?;
        for run in &page.runs {
            match output.json() {
                true => output.write_json(&Run { run })?,
                false => writeln!(output, "{}", shown::key(run))?,
            }
        }
        if !pages.go_on(page.runs.len(), page.next, output)? {
            return Ok(());
        }
    }
}

fn write(operation: &LoggedOperation, output: &mut Output) -> Result {
    if output.json_lines() {
        return output.write_json(operation);
    }
    let LoggedOperation { op, at, agent, namespace, key, found, refused, count, preview } =
        operation;
    let mut line = format!("{at}  {}  {op}", agent.as_deref().map_or("-".into(), shown::key));
    for text in [namespace, key].into_iter().flatten() {
        line.push_str(&format!("  {}", shown::key(text)));
    }
    if *refused {
        line.push_str("  refused");
    } else if let Some(count) = count {
        line.push_str(&format!("  {count}"));
    } else if *found == Some(false) {
        line.push_str(if op == "set" { "  new" } else { "  not there" });
    }
    output.write_columns(&line, preview.as_deref().unwrap_or_default())
}
