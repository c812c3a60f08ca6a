use clap::Args;
use keyward::records::geo::{Circle, Point};
use keyward::records::{BUDGET_MAX, Near};

use super::paging::{Paging, tell_next};
use super::question::{Terms, place_index};
use super::reach::Reach;
use super::shown;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Find the places nearest to a point
///
/// Within a radius, the nearest first, each with its distance over the ground (distance_m, in metres,
/// with --json). With --json and more to come, the last line is {"next": CURSOR}; what lies nearer
/// is read again for each page, so pages far out cost more. A search that needs to read more
/// than --budget entries for a page fails with too-expensive.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward record near places --lat 52.52 --lon 13.405 --radius 5km
  keyward record near places --lat -33.86 --lon 151.21 --radius 800m --limit 5 --json"#)]
pub struct Arguments {
    /// The space, as the schema calls it
    space: String,
    /// The index of places; may be left out where there is one
    index: Option<String>,
    /// Degrees north
    #[arg(long, value_name = "DEGREES", allow_hyphen_values = true)]
    lat: f64,
    /// Degrees east
    #[arg(long, value_name = "DEGREES", allow_hyphen_values = true)]
    lon: f64,
    /// How far away at most: 800m, 5km, 0.5km
    #[arg(long, value_name = "DISTANCE", value_parser = metres)]
    radius: f64,
    #[command(flatten)]
    terms: Terms,
    /// Read so many entries for a page at most; a search that needs more fails [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=BUDGET_MAX as i64))]
    budget: Option<u32>,
    #[command(flatten)]
    paging: Paging,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let Arguments { space, index, lat, lon, radius, terms, budget, paging } = arguments;
    let index = place_index(reach.declaration(&space)?, index)?;
    let centre = Point::new(lat, lon).map_err(|error| Failure::invalid(error.to_string()))?;
    let circle =
        Circle::new(centre, radius).map_err(|error| Failure::invalid(error.to_string()))?;
    let mut near = Near {
        owner: terms.owner.clone(),
        filter: terms.filter()?,
        fields: terms.fields,
        budget: budget.map_or(BUDGET_MAX, |budget| budget as usize),
        ..Near::new(index, circle).limit(paging.page_limit()).after(paging.cursor.clone())
    };
    let space = reach.to_read(&space, output).await?;
    loop {
        let page = space.near(&near).await?;
        for found in page.found {
            shown::write_distant(found.record, found.distance_m, output)?;
        }
        match page.next {
            None => return Ok(()),
            Some(next) if paging.all => near.cursor = Some(next),
            Some(next) => return tell_next(&next, output),
        }
    }
}

/// Reads a distance: a number with m or km.
fn metres(text: &str) -> Result<f64, String> {
    let (number, unit) = match (text.strip_suffix("km"), text.strip_suffix('m')) {
        (Some(number), _) => (number, 1_000.0),
        (None, Some(number)) => (number, 1.0),
        (None, None) => ("", 0.0),
    };
    let parsed = number.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    parsed.map(|n| n * unit).ok_or("write a number with m or km, such as 800m or 5km".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_needs_a_unit() {
        assert_eq!(metres("800m"), Ok(800.0));
        assert_eq!(metres("0.5km"), Ok(500.0));
        for wrong in ["5", "", "km", "-1km", "5 miles", "infkm", "NaNm"] {
            assert!(metres(wrong).is_err(), "{wrong}");
        }
    }
}
