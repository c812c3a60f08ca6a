use clap::Args;
use keyward::Code;
use keyward::agreements::{Analysis, PageId};

use crate::agreements::Desk;
use crate::command::page::page_id;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Have a model look for issues
///
/// It compares the page with its policies, and is told the issues that are known, which it does not report
/// again. What was analysed before and has not changed since is not analysed again, unless --again is given.
///
/// It needs a model: [agreements.NAME.models] in the config file.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward issue analyze supply-2026
  keyward issue analyze supply-2026 --again
  keyward issue analyze supply-2026 --last"#)]
pub struct Arguments {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
    /// Also if nothing has changed since the last time
    #[arg(long)]
    again: bool,
    /// Only show what the last analysis came to
    #[arg(long, conflicts_with = "again")]
    last: bool,
}

impl Arguments {
    /// Whether nothing is done.
    pub fn only_looks(&self) -> bool {
        self.last
    }
}

pub async fn run(arguments: Arguments, desk: &mut Desk, output: &mut Output) -> Result {
    let Arguments { page, again, last } = arguments;
    let analysis = match last {
        false => desk.analyze(&page, again, output).await?,
        true => desk.last_analysis(&page).await?.ok_or_else(|| {
            let message = format!("the page {page} was not analysed yet");
            Failure::new(Code::NotFound, message)
                .hint(format!("keyward issue analyze {page} does it."))
        })?,
    };
    if output.json() {
        return output.write_json(&analysis);
    }
    told(&page, &analysis, output)
}

fn told(page: &PageId, analysis: &Analysis, output: &mut Output) -> Result {
    let Analysis { at, by, found, refreshed, policies, unread, made, unchanged, .. } = analysis;
    let since = if *unchanged { " (nothing has changed since)" } else { "" };
    writeln!(
        output,
        "{page} was compared with {policies} policies at {at} by {by}{since}: {found} new issues, \
         {refreshed} known ones seen again"
    )?;
    if let Some(made) = made {
        let receipt = &made.receipt;
        writeln!(output, "asked {} ({})", receipt.model, receipt.provider)?;
    }
    for left in unread {
        writeln!(output, "left out  {}: {}", left.source, left.reason)?;
    }
    Ok(())
}
