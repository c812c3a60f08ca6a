use clap::Args;
use keyward::agents::UserData;
use serde::Serialize;

use super::namespace::InNamespace;
use super::paging::Paging;
use super::reach::Reach;
use super::{shown, skipped};
use crate::failure::Result;
use crate::output::Output;

/// List the keys of a namespace
///
/// One a line, in the order of their bytes: all of them, or those that start with a text. A key with
/// characters that would break the line is shown as JSON text.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent keys
  keyward agent keys src/ -n files:apache/repo
  keyward agent keys --limit 100 --json"#)]
pub struct Arguments {
    /// Only keys that start with this
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,
    #[command(flatten)]
    place: InNamespace,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Serialize)]
struct Line<'k> {
    key: &'k str,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { prefix, place, paging } = arguments;
    let work = async |user: UserData, output: &mut Output| {
        let namespace = user.use_namespace(&place.namespace)?;
        let mut pages = paging.pages();
        loop {
            let page = namespace.list_keys(&prefix, pages.after(), pages.limit()).await?;
            for key in &page.keys {
                match output.json() {
                    true => output.write_json(&Line { key })?,
                    false => writeln!(output, "{}", shown::key(key))?,
                }
            }
            if !pages.go_on(page.keys.len(), page.next, output)? {
                output.flush()?;
                skipped::tell(&user.skipped(Some(&place.namespace)).await?);
                return Ok(());
            }
        }
    };
    reach.to_read(output, work).await
}
