//! Places in a box.

use keyward_engine::{PageBytes, Row, Scan};
use keyward_key::{Key, KeyRange};

use crate::geo::{BoundingBox, RANGES_MAX};
use crate::place_query::PlaceQuery;
use crate::places::stored_point;
use crate::query::{Answer, Found, Read};
use crate::space::Space;
use crate::{Error, Result};

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
                let missing = (within.limit - answer.records.len()).min(bytes.rows_to_read());
                let rows = missing.max(ahead).min(budget);
                let (rows, goes_on) = match self.is_ordered() {
                    true => {
                        let scan = Scan::new(range.clone()).limit(rows);
                        let page = self.shared.store.scan(&scan).await?;
                        (page.rows, page.next.is_some())
                    }
                    false => match (self.sorted_rows(&range, budget).await?, &position) {
                        (Some(rows), _) => (rows, false),
                        // The next page begins with this range, and has the whole budget for it.
                        (None, Some(position)) if answer.read.entries > 0 => {
                            return self.ended_at(position, within, answer).await;
                        }
                        (None, _) => {
                            let (found, limit) = (answer.records.len(), within.limit);
                            return Err(Error::TooExpensive { entries: budget, found, limit });
                        }
                    },
                };
                answer.read.entries += rows.len();
                more = goes_on;
                let mut found = Found::with_capacity(rows.len());
                for row in rows {
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
                    return self.ended_at(position, within, answer).await;
                }
            }
        }
        Ok(answer)
    }

    /// A page after which there may be more.
    async fn ended_at(&self, position: &Key, within: &Within, answer: Answer) -> Result<Answer> {
        let question = self.place_question("within", within).await?;
        let next = question.cursor(position.as_bytes(), self.shared.clock.now());
        Ok(Answer { next: Some(next), ..answer })
    }

    /// All rows of a range in the order of their keys, from an engine that gives them in any order: only so can a
    /// page end between them. `None` if there are more than `budget`.
    async fn sorted_rows(&self, range: &KeyRange, budget: usize) -> Result<Option<Vec<Row>>> {
        let mut rows = Vec::new();
        let mut scan = Scan::new(range.clone());
        loop {
            scan.limit = (budget - rows.len()).max(1);
            let page = self.shared.store.scan(&scan).await?;
            rows.extend(page.rows);
            match page.next {
                None if rows.len() <= budget => break,
                Some(next) if rows.len() < budget => scan.after = Some(next),
                _ => return Ok(None),
            }
        }
        rows.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(Some(rows))
    }
}
