//! One page, or all of them.

use clap::Args;
use keyward::records::{LIMIT_DEFAULT, LIMIT_MAX};

use crate::failure::Result;
use crate::output::{Output, note};

/// One page, or all of them.
#[derive(Debug, Args)]
pub struct Paging {
    /// At most so many lines, up to 1000 [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=LIMIT_MAX as i64))]
    limit: Option<u16>,
    /// Go on where an earlier page of the same question ended
    #[arg(long)]
    pub cursor: Option<String>,
    /// Everything, page after page
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
}

impl Paging {
    /// How many lines a page has.
    pub fn page_limit(&self) -> usize {
        match self.limit {
            Some(limit) => usize::from(limit),
            None if self.all => LIMIT_MAX,
            None => LIMIT_DEFAULT,
        }
    }
}

/// Tells where the next page begins: with --json as a last line `{"next": …}`, else beside the
/// output.
pub fn tell_next(cursor: &str, output: &mut Output) -> Result {
    if output.json() {
        return output.write_json(&serde_json::json!({ "next": cursor }));
    }
    output.flush()?;
    note(format_args!("there is more: add --all, or go on with\n  --cursor {cursor}"));
    Ok(())
}
