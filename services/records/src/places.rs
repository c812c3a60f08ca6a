//! Indexes of places, as near and within ask them.

use keyward_engine::{Entry, Json, Scan};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_schema::{FieldPath, IndexKind};

use crate::field::find;
use crate::geo::{CellRange, Circle, Point, Precision, distance_m};
use crate::index::Layout;
use crate::query::{BUDGET_MAX, LIMIT_MAX, Read};
use crate::space::Space;
use crate::{Error, Result};

/// How many entries of one range are read at once.
const ROWS: usize = 1_000;

/// An index of places, as one caller asks it.
pub(crate) struct Places<'s> {
    space: &'s Space,
    pub layout: Layout,
    prefix: Prefix,
    pub precision: Precision,
    lat: FieldPath,
    lon: FieldPath,
}

/// An entry that lies where it should.
pub(crate) struct Candidate {
    pub distance_m: f64,
    pub entry: Key,
    pub primary: Key,
}

impl Space {
    pub(crate) fn places(&self, index: &str, owner: Option<&str>) -> Result<Places<'_>> {
        let declared = self.declared(index)?;
        let owner = self.access.index_owner(declared.scope, owner)?;
        let IndexKind::Geohash { lat, lon, precision } = &declared.kind else {
            return Err(Error::BadQuery(format!("{index} is not an index of places")));
        };
        if self.access.hides(declared.scope) {
            return Err(Error::BadQuery(format!("the index {index} holds every user's places")));
        }
        let layout = Layout::new(declared.clone());
        Ok(Places {
            space: self,
            prefix: layout.prefix_of(owner.as_deref()),
            precision: Precision::new(*precision)
                .map_err(|error| Error::Damaged(error.to_string()))?,
            lat: lat.clone(),
            lon: lon.clone(),
            layout,
        })
    }
}

impl Places<'_> {
    pub fn range(&self, cells: &CellRange) -> KeyRange {
        KeyRange::between(&self.prefix, Some(&cells.from), Some(&cells.to))
    }

    /// The entries of a range of cells that lie in the circle.
    pub async fn candidates(
        &self,
        cells: &CellRange,
        circle: Circle,
        read: &mut Read,
    ) -> Result<Vec<Candidate>> {
        let mut candidates = Vec::new();
        let mut scan = Scan::new(self.range(cells)).limit(ROWS);
        loop {
            let page = self.space.shared.store.scan(&scan).await?;
            read.entries += page.rows.len();
            for row in page.rows {
                let place = row.entry.as_ref().and_then(|entry| stored_point(&entry.value));
                let owned = self.space.access.is_owned();
                let primary = self.layout.primary(&row.key, None, owned);
                let (Some(place), Some(primary)) = (place, primary) else { continue };
                if circle.contains(place) {
                    let distance_m = distance_m(circle.centre(), place);
                    candidates.push(Candidate { distance_m, entry: row.key, primary });
                }
            }
            match page.next {
                Some(next) if read.entries < BUDGET_MAX => scan.after = Some(next),
                _ => return Ok(candidates),
            }
        }
    }

    /// Where a record's place is now.
    pub fn point(&self, stored: &Entry) -> Option<Point> {
        let degrees = |field: &FieldPath| -> Option<f64> {
            std::str::from_utf8(find(stored.value.as_bytes(), field)?).ok()?.parse().ok()
        };
        Point::new(degrees(&self.lat)?, degrees(&self.lon)?).ok()
    }
}

/// The place that an entry holds: `[lat,lon]`.
pub(crate) fn stored_point(value: &Json) -> Option<Point> {
    let (lat, lon) = value.as_str().strip_prefix('[')?.strip_suffix(']')?.split_once(',')?;
    Point::new(lat.parse().ok()?, lon.parse().ok()?).ok()
}

pub(crate) fn check_limit(limit: usize) -> Result<()> {
    if limit == 0 || limit > LIMIT_MAX {
        return Err(Error::BadQuery(format!("the limit is from 1 to {LIMIT_MAX}")));
    }
    Ok(())
}
