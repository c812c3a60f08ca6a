//! Everything, or so much of it.

use clap::Args;
use keyward::records::LIMIT_MAX;

use crate::failure::Result;
use crate::output::{Output, note};

/// Everything, or so much of it.
#[derive(Debug, Args)]
pub struct Paging {
    /// At most so many; without it, everything
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Go on where an earlier part of the same question ended
    #[arg(long)]
    cursor: Option<String>,
}

/// How far a listing is.
pub struct Pages {
    left: usize,
    after: Option<String>,
}

impl Paging {
    /// From the beginning, or from where an earlier part ended.
    pub fn pages(self) -> Pages {
        let left = self.limit.map_or(usize::MAX, |limit| limit as usize);
        Pages { left, after: self.cursor }
    }
}

impl Pages {
    /// Where the next page begins.
    pub fn after(&self) -> Option<String> {
        self.after.clone()
    }

    /// How many the next page may have.
    pub fn limit(&self) -> usize {
        self.left.min(LIMIT_MAX)
    }

    /// Whether another page is to be read after one that had `shown` lines. Where there is more than was
    /// asked for, tells where it goes on: with --json as a last line `{"next": …}`, else beside the
    /// output.
    pub fn go_on(
        &mut self,
        shown: usize,
        next: Option<String>,
        output: &mut Output,
    ) -> Result<bool> {
        self.left = self.left.saturating_sub(shown);
        let Some(next) = next else { return Ok(false) };
        if self.left > 0 {
            self.after = Some(next);
            return Ok(true);
        }
        if output.json() {
            output.write_json(&serde_json::json!({ "next": next }))?;
        } else {
            output.flush()?;
            note(format_args!(
                "there is more: leave out --limit, or go on with\n  --cursor {next}"
            ));
        }
        Ok(false)
    }
}
