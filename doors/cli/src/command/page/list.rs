use clap::Args;

use crate::agreements::Desk;
use crate::failure::Result;
use crate::output::Output;
use crate::queues::Paging;
use crate::table::Table;

/// List pages, by id
///
/// One line each: id and title. As JSON lines when a program reads it, or with --json.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward page list
  keyward page list --folder ./agreements --all --json | jq -r .id"#)]
pub struct Arguments {
    #[command(flatten)]
    paging: Paging,
}

pub async fn run(arguments: Arguments, desk: &Desk, output: &mut Output) -> Result {
    let Arguments { mut paging } = arguments;
    loop {
        let found = desk.pages(paging.after.as_deref(), paging.limit()).await?;
        let mut table = Table::default();
        for page in &found.items {
            if output.json_lines() {
                output.write_json(page)?;
            } else {
                table.row([page.id.as_str(), &page.title]);
            }
        }
        table.write("", output)?;
        if !paging.go_on(found.next.as_deref(), output)? {
            return Ok(());
        }
    }
}
