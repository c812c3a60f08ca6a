use clap::Args;
use keyward::agents::UserData;
use serde::Serialize;

use super::paging::Paging;
use super::reach::Reach;
use super::shown;
use crate::failure::Result;
use crate::output::Output;

/// List the namespaces of a user that have entries
///
/// One a line, in the order of their bytes.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent namespaces
  keyward agent namespaces --user ada --json"#)]
pub struct Arguments {
    #[command(flatten)]
    paging: Paging,
}

#[derive(Serialize)]
struct Line<'n> {
    namespace: &'n str,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let work = async |user: UserData, output: &mut Output| {
        let mut pages = arguments.paging.pages();
        loop {
            let page = user.list_namespaces(pages.after(), pages.limit()).await?;
            for namespace in &page.namespaces {
                match output.json() {
                    true => output.write_json(&Line { namespace })?,
                    false => writeln!(output, "{}", shown::key(namespace))?,
                }
            }
            if !pages.go_on(page.namespaces.len(), page.next, output)? {
                return Ok(());
            }
        }
    };
    reach.to_read(output, work).await
}
