use clap::Args;
use keyward::agents::UserData;

use super::namespace::InNamespace;
use super::paging::Paging;
use super::reach::Reach;
use super::shown;
use crate::failure::Result;
use crate::output::Output;

/// Print the entries of a namespace
///
/// In the order of their keys. On a terminal one line each, key and value; when a program reads it, or
/// with --json, the whole entries as JSON lines. They do not count as accessed.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent entries
  keyward agent entries src/ -n files:apache/repo | jq .metadata
  keyward agent entries --limit 20 --text"#)]
pub struct Arguments {
    /// Only entries whose keys start with this
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,
    #[command(flatten)]
    place: InNamespace,
    #[command(flatten)]
    paging: Paging,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { prefix, place, paging } = arguments;
    let work = async |user: UserData, output: &mut Output| {
        let namespace = user.use_namespace(&place.namespace)?;
        let mut pages = paging.pages();
        loop {
            let page = namespace.get_all(&prefix, pages.after(), pages.limit()).await?;
            for entry in &page.entries {
                shown::write(entry, output)?;
            }
            if !pages.go_on(page.entries.len(), page.next, output)? {
                return Ok(());
            }
        }
    };
    reach.to_read(output, work).await
}
