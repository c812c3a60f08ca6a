use clap::Args;
use keyward::Tier;
use keyward::records::Explanation;
use serde::Serialize;

use super::paging::Paging;
use super::question::Question;
use super::reach::Reach;
use crate::failure::Result;
use crate::output::Output;

/// Tell how a query is answered, and what that costs
///
/// The page is read, and not shown: the index, the range of its entries, how many were read, and how
/// many records that gave.
#[derive(Debug, Args)]
#[command(
    override_usage = "keyward record explain [OPTIONS] <SPACE> [INDEX | VAR=VALUE...]",
    after_help = r#"Examples:
  keyward record explain notes notes_by_title --prefix k --as ada
  keyward record explain notes user=ada --filter '{"status":"open"}' --allow-scan --json"#
)]
pub struct Arguments {
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Serialize)]
struct Line {
    index: Option<String>,
    range: String,
    filtered: bool,
    guarantee: &'static str,
    /// Entries, or keys, that were read.
    entries_read: usize,
    /// Records that were fetched.
    records_read: usize,
    /// Records that were fetched and did not match.
    dropped: usize,
    /// Records that the page has.
    found: usize,
    more: bool,
}

impl From<Explanation> for Line {
    fn from(explanation: Explanation) -> Self {
        let Explanation { index, range, filtered, guarantee, read, records, more } = explanation;
        Self {
            index,
            range,
            filtered,
            guarantee: match guarantee {
                Tier::Atomic => "atomic",
                Tier::Recoverable => "recoverable",
                Tier::Advisory => "advisory",
            },
            entries_read: read.entries,
            records_read: read.records,
            dropped: read.dropped,
            found: records,
            more,
        }
    }
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let Arguments { question, paging } = arguments;
    let name = question.space.clone();
    let query = question.query(reach)?;
    let space = reach.to_read(&name, output).await?;
    let query = query.limit(paging.page_limit()).after(paging.cursor);
    let line = Line::from(space.explain(&query).await?);
    if output.json() {
        return output.write_json(&line);
    }
    let index = line.index.as_deref().unwrap_or("none: the keys themselves");
    let filter = if line.filtered { "yes: what is read is more than what is found" } else { "no" };
    let worth = match line.guarantee {
        "advisory" => "best effort (advisory)".to_owned(),
        tier => format!("exact ({tier})"),
    };
    let more = if line.more { ", and there is more" } else { "" };
    writeln!(output, "index    {index}")?;
    writeln!(output, "range    {}", line.range.trim_end())?;
    writeln!(output, "filter   {filter}")?;
    let entries = counted(line.entries_read, "entry", "entries");
    let records = |count| counted(count, "record", "records");
    writeln!(output, "read     {entries}, {}", records(line.records_read))?;
    writeln!(output, "dropped  {}", records(line.dropped))?;
    writeln!(output, "found    {}{more}", records(line.found))?;
    writeln!(output, "answer   {worth}")
}

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}
