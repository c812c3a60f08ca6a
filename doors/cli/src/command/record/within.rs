use clap::Args;
use keyward::records::geo::BoundingBox;
use keyward::records::{BUDGET_MAX, Within};

use super::paging::{Paging, tell_next};
use super::question::{Terms, place_index};
use super::reach::Reach;
use super::shown;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Find the places in a box
///
/// A box whose west is greater than its east goes across the 180th meridian.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward record within places --south 52.4 --west 13.1 --north 52.6 --east 13.6
  keyward record within places --south -20 --west 177 --north -15 --east -178 --all --json"#)]
pub struct Arguments {
    /// The space, as the schema calls it
    space: String,
    /// The index of places; may be left out where there is one
    index: Option<String>,
    /// The southern edge, in degrees north
    #[arg(long, value_name = "DEGREES", allow_hyphen_values = true)]
    south: f64,
    /// The western edge, in degrees east
    #[arg(long, value_name = "DEGREES", allow_hyphen_values = true)]
    west: f64,
    /// The northern edge, in degrees north
    #[arg(long, value_name = "DEGREES", allow_hyphen_values = true)]
    north: f64,
    /// The eastern edge, in degrees east
    #[arg(long, value_name = "DEGREES", allow_hyphen_values = true)]
    east: f64,
    #[command(flatten)]
    terms: Terms,
    /// Read so many entries for a page at most [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=BUDGET_MAX as i64))]
    budget: Option<u32>,
    #[command(flatten)]
    paging: Paging,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let Arguments { space, index, south, west, north, east, terms, budget, paging } = arguments;
    let index = place_index(reach.declaration(&space)?, index)?;
    let area = BoundingBox::new(south, west, north, east)
        .map_err(|error| Failure::invalid(error.to_string()))?;
    let mut within = Within {
        owner: terms.owner.clone(),
        filter: terms.filter()?,
        fields: terms.fields,
        budget: budget.map_or(BUDGET_MAX, |budget| budget as usize),
        ..Within::new(index, area).limit(paging.page_limit()).after(paging.cursor.clone())
    };
    let space = reach.to_read(&space, output).await?;
    loop {
        let page = space.within(&within).await?;
        for record in page.records {
            shown::write(record, output)?;
        }
        match page.next {
            None => return Ok(()),
            Some(next) if paging.all => within.cursor = Some(next),
            Some(next) => return tell_next(&next, output),
        }
    }
}
