use clap::Args;

use super::paging::{Paging, tell_next};
use super::question::Question;
use super::reach::Reach;
use super::shown;
use crate::failure::Result;
use crate::output::Output;

/// Find records through an index, or in key order
///
/// Values for an index's fields stand as they are, without quotes: --equal open. Nothing is read
/// from end to end unless --allow-scan asks for it. On a terminal one line each, key and value; when
/// a program reads it, or with --json, JSON lines. With --json and more to come, the last line is
/// {"next": CURSOR}.
#[derive(Debug, Args)]
#[command(
    override_usage = "keyward record query [OPTIONS] <SPACE> [INDEX | VAR=VALUE...]",
    after_help = r#"Examples:
  keyward record query notes notes_by_title --prefix k --as ada
  keyward record query notes notes_by_status --equal open --desc --limit 10 --as ada
  keyward record query notes notes_by_votes --above 3 --below 10 --as ada
  keyward record query posts posts_by_tag --equal rust --fields title,publishedAt --all
  keyward record query notes user=ada --filter '{"status":"open"}' --allow-scan"#
)]
pub struct Arguments {
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    paging: Paging,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let Arguments { question, paging } = arguments;
    let name = question.space.clone();
    let query = question.query(reach)?;
    let space = reach.to_read(&name, output).await?;
    let mut query = query.limit(paging.page_limit()).after(paging.cursor.clone());
    loop {
        let page = space.query(&query).await?;
        for record in page.records {
            shown::write(record, output)?;
        }
        match page.next {
            None => return Ok(()),
            Some(next) if paging.all => query.cursor = Some(next),
            Some(next) => return tell_next(&next, output),
        }
    }
}
