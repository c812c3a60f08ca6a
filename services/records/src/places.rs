//! Indexes of places, as near and within ask them.

use keyward_engine::{Entry, Json, Row, Scan, Tier};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_schema::{FieldPath, IndexKind};

use crate::field::find;
use crate::geo::{CellRange, Circle, Point, Precision, distance_m};
use crate::index::Layout;
use crate::query::Read;
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

    /// The entries of a range of cells whose places lie in the circle; `None` if `budget` entries were
    /// read before the end of the range.
    pub async fn candidates(
        &self,
        cells: &CellRange,
        circle: Circle,
        read: &mut Read,
        budget: usize,
    ) -> Result<Option<Vec<Candidate>>> {
        let mut candidates = Vec::new();
        let mut scan = Scan::new(self.range(cells));
        loop {
            scan.limit = budget.saturating_sub(read.entries).min(ROWS);
            if scan.limit == 0 {
                return Ok(None);
            }
            let page = self.space.shared.store.scan(&scan).await?;
            read.entries += page.rows.len();
            for (entry, primary, place) in self.placed(page.rows, read).await? {
                if circle.contains(place) {
                    let distance_m = distance_m(circle.centre(), place);
                    candidates.push(Candidate { distance_m, entry, primary });
                }
            }
            match page.next {
                Some(next) => scan.after = Some(next),
                None => return Ok(Some(candidates)),
            }
        }
    }

    /// Entries, the records they lead to, and where those are.
    async fn placed(&self, rows: Vec<Row>, read: &mut Read) -> Result<Vec<(Key, Key, Point)>> {
        let primary = |key: &Key| self.layout.primary(key, None, self.space.access.is_owned());
        if self.are_exact() {
            let placed = rows.into_iter().filter_map(|row| {
                let place = stored_point(&row.entry?.value)?;
                let primary = primary(&row.key)?;
                Some((row.key, primary, place))
            });
            return Ok(placed.collect());
        }
        let (entries, primaries): (Vec<Key>, Vec<Key>) =
            rows.into_iter().filter_map(|row| primary(&row.key).map(|it| (row.key, it))).unzip();
        let stored = self.space.shared.store.get_many(&primaries).await?;
        read.records += primaries.len();
        let both = entries.into_iter().zip(primaries).zip(stored);
        let placed = both.filter_map(|((entry, primary), stored)| {
            let place = self.point(&stored?)?;
            Some((entry, primary, place))
        });
        Ok(placed.collect())
    }

    /// Whether an entry says where its record is. Where it is not written together with the record,
    /// only its cell can be relied on: a writer who moves the place inside the cell writes the entry
    /// first, and may never come to the record.
    pub fn are_exact(&self) -> bool {
        self.space.guarantee() == Tier::Atomic
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
