//! Places near a point.

use keyward_engine::{PageBytes, Tier};
use keyward_key::Key;

use crate::change::Record;
use crate::geo::{Circle, Rings, distance_m};
use crate::place_query::PlaceQuery;
use crate::places::Candidate;
use crate::query::{Found, Read};
use crate::space::Space;
use crate::{Error, Result};

/// A question for the places of an index that lie in a circle, the nearest to its centre first.
///
/// A page that goes on after a cursor gives what is farther away. What lies nearer is read again, so a
/// far page costs more than a near one. One that costs more than the query's budget is refused with
/// [`Error::TooExpensive`].
///
/// ```
/// use keyward_records::Near;
/// use keyward_records::geo::{Circle, Point};
///
/// let within_a_kilometre = Circle::new(Point::new(52.52, 13.405)?, 1_000.0)?;
/// let near = Near::new("by_place", within_a_kilometre).limit(20);
/// assert_eq!(near.limit, 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Near = PlaceQuery<Circle>;

/// A record and how far away its place is.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbour {
    /// The record.
    pub record: Record,
    /// The great-circle distance in metres.
    pub distance_m: f64,
}

/// What is near.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbours {
    /// The nearest first.
    pub found: Vec<Neighbour>,
    /// Where to go on; `None` at the end.
    pub next: Option<String>,
    /// What the answer is worth.
    pub guarantee: Tier,
    /// What it cost.
    pub read: Read,
}

/// Where a page of neighbours ended: the order is by distance, then by key.
struct Reached {
    distance_m: f64,
    primary: Key,
}

impl Reached {
    fn at(candidate: &Candidate) -> Self {
        Self { distance_m: candidate.distance_m, primary: candidate.primary.clone() }
    }

    fn parse(position: &[u8]) -> Result<Self> {
        let (bits, primary) =
            position.split_first_chunk().ok_or(Error::BadCursor("it stands nowhere"))?;
        let primary = Key::from_stored(primary.to_vec());
        Ok(Self { distance_m: f64::from_be_bytes(*bits), primary })
    }

    fn position(&self) -> Vec<u8> {
        [&self.distance_m.to_be_bytes()[..], self.primary.as_bytes()].concat()
    }

    fn is_past(&self, candidate: &Candidate) -> bool {
        let order = self.distance_m.total_cmp(&candidate.distance_m);
        order.then_with(|| self.primary.cmp(&candidate.primary)).is_ge()
    }
}

impl Space {
    /// The places nearest to a point, within a radius: one page of them.
    pub async fn near(&self, near: &Near) -> Result<Neighbours> {
        near.check()?;
        let places = self.places(&near.index, near.owner.as_deref())?;
        let mut answer = Neighbours {
            found: Vec::new(),
            next: None,
            guarantee: self.guarantee(),
            read: Read::default(),
        };
        let Some(catalog) = self.readable(&places.layout).await? else { return Ok(answer) };
        let mut reached = match &near.cursor {
            Some(cursor) => {
                let question = self.place_question("near", near).await?;
                Some(Reached::parse(&question.position(cursor, self.shared.clock.now())?)?)
            }
            None => None,
        };
        let mut ahead = self.rows_ahead(&near.filter);
        let mut bytes = PageBytes::new(near.bytes_max);
        let is_full =
            |found: &[Neighbour], bytes: &PageBytes| found.len() >= near.limit || bytes.is_full();
        let mut rings = Rings::new(near.area, places.precision);
        // Seen, but farther away than the rings so far: sorted when their turn comes.
        let mut waiting: Vec<Candidate> = Vec::new();
        while let Some(ring) = rings.next() {
            for cells in &ring.ranges {
                let read = &mut answer.read;
                let Some(seen) = places.candidates(cells, near.area, read, near.budget).await?
                else {
                    // The rest of the ring is not known, so what was found may not be the nearest.
                    return Err(Error::TooExpensive {
                        entries: answer.read.entries,
                        found: answer.found.len(),
                        limit: near.limit,
                    });
                };
                let is_new = |it: &Candidate| reached.as_ref().is_none_or(|at| !at.is_past(it));
                waiting.extend(seen.into_iter().filter(is_new));
            }
            let is_near = |candidate: &Candidate| candidate.distance_m <= ring.radius_m;
            let (mut sure, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_near);
            waiting = rest;
            sure.sort_by(|a, b| {
                a.distance_m.total_cmp(&b.distance_m).then_with(|| a.primary.cmp(&b.primary))
            });
            let mut sure = sure.into_iter().peekable();
            let mut unused = false;
            while !is_full(&answer.found, &bytes) && sure.peek().is_some() {
                let rows = (near.limit - answer.found.len()).min(bytes.rows_to_read()).max(ahead);
                let mut some = Found::with_capacity(rows);
                let mut ends = Vec::with_capacity(rows);
                for candidate in sure.by_ref().take(rows) {
                    ends.push(Reached::at(&candidate));
                    some.push(candidate.entry, candidate.primary);
                }
                let fetched = self.fetch(some, &catalog, &places.layout).await?;
                let mut fetched = ends.into_iter().zip(fetched);
                for (end, (entry, primary, stored)) in fetched.by_ref() {
                    reached = Some(end);
                    answer.read.records += 1;
                    let place = stored.as_ref().and_then(|stored| places.point(stored));
                    let record = self.matching(&places.layout, &entry, primary, stored, None)?;
                    match (record.filter(|record| near.filter.holds(&record.value)), place) {
                        (Some(record), Some(place)) if near.area.contains(place) => {
                            let distance_m = distance_m(near.area.centre(), place);
                            let record = near.projected(record);
                            bytes.add(record.bytes());
                            answer.found.push(Neighbour { record, distance_m });
                        }
                        _ => answer.read.dropped += 1,
                    }
                    if is_full(&answer.found, &bytes) {
                        break;
                    }
                }
                unused = fetched.len() > 0;
                ahead = self.rows_ahead_max();
            }
            if is_full(&answer.found, &bytes) {
                let is_last = ring.radius_m >= near.area.radius_m();
                let more = unused || sure.peek().is_some() || !waiting.is_empty() || !is_last;
                if let (Some(reached), true) = (&reached, more) {
                    let question = self.place_question("near", near).await?;
                    let now = self.shared.clock.now();
                    answer.next = Some(question.cursor(&reached.position(), now));
                }
                break;
            }
            rings.adapt(answer.found.len(), near.limit);
        }
        // A record may have moved between the index and the look at it.
        answer.found.sort_by(|a, b| a.distance_m.total_cmp(&b.distance_m));
        Ok(answer)
    }
}
