//! Places in a box.

use keyward_engine::Scan;
use keyward_key::Key;

use crate::Result;
use crate::geo::{BoundingBox, RANGES_MAX};
use crate::page_bytes::PageBytes;
use crate::place_query::PlaceQuery;
use crate::places::stored_point;
use crate::query::{Answer, Found, Read};
use crate::space::Space;

/// A question for the places of an index that lie in a box, in the order of their geohashes.
pub type Within = PlaceQuery<BoundingBox>;

impl Space {
    /// One page of the places in a box, in the order of their geohashes.
    pub async fn within(&self, within: &Within) -> Result<Answer> {
        within.check()?;
        let places = self.places(&within.index, within.owner.as_deref())?;
        let mut answer = Answer {
            records: Vec::new(),
            next: None,
            guarantee: self.guarantee(),
            read: Read::default(),
        };
        let Some(catalog) = self.readable(&places.layout).await? else { return Ok(answer) };
        let mut position = match &within.cursor {
            Some(cursor) => {
                let question = self.place_question("within", within).await?;
                Some(Key::from_stored(question.position(cursor, self.shared.clock.now())?))
            }
            None => None,
        };
        let mut ahead = self.rows_ahead(&within.filter);
        let mut bytes = PageBytes::new(within.bytes_max);
        for cells in within.area.cover(places.precision, RANGES_MAX) {
            let mut range = places.range(&cells);
            if let Some(position) = &position {
                range = range.after(position);
            }
            let mut more = !range.is_empty();
            while more {
                let budget = within.budget.saturating_sub(answer.read.entries);
                let missing = (within.limit - answer.records.len()).min(bytes.rows());
                let rows = missing.max(ahead).min(budget);
                let page = self.shared.store.scan(&Scan::new(range.clone()).limit(rows)).await?;
                answer.read.entries += page.rows.len();
                more = page.next.is_some();
                let mut found = Found::with_capacity(page.rows.len());
                for row in page.rows {
                    position = Some(row.key.clone());
                    range = range.after(&row.key);
                    let place = row.entry.as_ref().and_then(|entry| stored_point(&entry.value));
                    let outside = place.is_none_or(|place| !within.area.contains(place));
                    if places.are_exact() && outside {
                        continue;
                    }
                    let primary = places.layout.primary(&row.key, None, self.access.is_owned());
                    if let Some(primary) = primary {
                        found.push(row.key, primary);
                    }
                }
                let mut fetched = self.fetch(found, &catalog, &places.layout).await?;
                while let Some((entry, primary, stored)) = fetched.next() {
                    answer.read.records += 1;
                    let place = stored.as_ref().and_then(|stored| places.point(stored));
                    let inside = place.is_some_and(|place| within.area.contains(place));
                    let record = self.matching(&places.layout, &entry, primary, stored, None)?;
                    match record.filter(|record| inside && within.filter.holds(&record.value)) {
                        Some(record) => {
                            let record = within.projected(record);
                            bytes.add(record.bytes());
                            answer.records.push(record);
                        }
                        None => answer.read.dropped += 1,
                    }
                    if answer.records.len() >= within.limit || bytes.is_full() {
                        if fetched.len() > 0 {
                            position = Some(entry);
                        }
                        break;
                    }
                }
                ahead = self.rows_ahead_max();
                let full = answer.records.len() >= within.limit || bytes.is_full();
                let spent = answer.read.entries >= within.budget;
                if let (true, Some(position)) = (full || spent, &position) {
                    let question = self.place_question("within", within).await?;
                    let now = self.shared.clock.now();
                    answer.next = Some(question.cursor(position.as_bytes(), now));
                    return Ok(answer);
                }
            }
        }
        Ok(answer)
    }
}
