//! Places near a point.

use keyward_engine::Tier;
use keyward_key::Key;
use keyward_schema::FieldPath;

use crate::change::Record;
use crate::cursor::Question;
use crate::geo::{Circle, Rings, distance_m};
use crate::places::{Candidate, check_limit};
use crate::query::{BUDGET_MAX, Filter, Found, LIMIT_DEFAULT, Read, project};
use crate::space::Space;
use crate::{Error, Result};

/// A question for the places nearest to a point.
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
#[derive(Debug, Clone, PartialEq)]
pub struct Near {
    /// The index of places.
    pub index: String,
    /// The circle in which to look.
    pub circle: Circle,
    /// Whose records, for those who may choose.
    pub owner: Option<String>,
    /// At most this many.
    pub limit: usize,
    /// Where an earlier page of the same question ended.
    pub cursor: Option<String>,
    /// What must hold besides.
    pub filter: Filter,
    /// The fields to give back; all of them, if none are named.
    pub fields: Vec<FieldPath>,
}

impl Near {
    /// The places of an index that lie in a circle, the nearest to its centre first.
    pub fn new(index: impl Into<String>, circle: Circle) -> Self {
        Self {
            index: index.into(),
            circle,
            owner: None,
            limit: LIMIT_DEFAULT,
            cursor: None,
            filter: Filter::default(),
            fields: Vec::new(),
        }
    }

    /// The same with at most `limit` places.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// The same, going on where a page ended: with what is farther away. What lies nearer is read
    /// again, so a far page costs more than a near one.
    #[must_use]
    pub fn after(mut self, cursor: Option<String>) -> Self {
        self.cursor = cursor;
        self
    }

    /// The same with conditions.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// The same for one owner's records.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }
}

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
    /// Where to go on; `None` at the end, or where the answer was cut short.
    pub next: Option<String>,
    /// Whether there was more to read than one question may: then nearer places may be missing. Ask
    /// for a smaller circle.
    pub cut_short: bool,
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
        check_limit(near.limit)?;
        let places = self.places(&near.index, near.owner.as_deref())?;
        let mut answer = Neighbours {
            found: Vec::new(),
            next: None,
            cut_short: false,
            guarantee: self.guarantee(),
            read: Read::default(),
        };
        let Some(catalog) = self.readable(&places.layout).await? else { return Ok(answer) };
        let mut reached = match &near.cursor {
            Some(cursor) => {
                let question = self.near_question(near).await?;
                Some(Reached::parse(&question.position(cursor, self.shared.clock.now())?)?)
            }
            None => None,
        };
        let mut ahead = self.rows_ahead(&near.filter);
        let mut rings = Rings::new(near.circle, places.precision);
        // Seen, but farther away than the rings so far: sorted when their turn comes.
        let mut waiting: Vec<Candidate> = Vec::new();
        while let Some(ring) = rings.next() {
            for cells in &ring.ranges {
                let seen = places.candidates(cells, near.circle, &mut answer.read).await?;
                let is_new = |it: &Candidate| reached.as_ref().is_none_or(|at| !at.is_past(it));
                waiting.extend(seen.into_iter().filter(is_new));
                if answer.read.entries >= BUDGET_MAX {
                    // The rest of the ring is not known, so what is found may not be the nearest.
                    answer.cut_short = true;
                    break;
                }
            }
            let is_near = |candidate: &Candidate| candidate.distance_m <= ring.radius_m;
            let (mut sure, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_near);
            waiting = rest;
            sure.sort_by(|a, b| {
                a.distance_m.total_cmp(&b.distance_m).then_with(|| a.primary.cmp(&b.primary))
            });
            let mut sure = sure.into_iter().peekable();
            let mut unused = false;
            while answer.found.len() < near.limit && sure.peek().is_some() {
                let rows = (near.limit - answer.found.len()).max(ahead);
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
                        (Some(record), Some(place)) if near.circle.contains(place) => {
                            let distance_m = distance_m(near.circle.centre(), place);
                            answer.found.push(Neighbour { record, distance_m });
                        }
                        _ => answer.read.dropped += 1,
                    }
                    if answer.found.len() >= near.limit {
                        break;
                    }
                }
                unused = fetched.len() > 0;
                ahead = self.rows_ahead_max();
            }
            if answer.found.len() >= near.limit || answer.cut_short {
                let is_last = ring.radius_m >= near.circle.radius_m();
                let more = unused || sure.peek().is_some() || !waiting.is_empty() || !is_last;
                if let (Some(reached), true, false) = (&reached, more, answer.cut_short) {
                    let question = self.near_question(near).await?;
                    let now = self.shared.clock.now();
                    answer.next = Some(question.cursor(&reached.position(), now));
                }
                break;
            }
            rings.adapt(answer.found.len(), near.limit);
        }
        // A record may have moved between the index and the look at it.
        answer.found.sort_by(|a, b| a.distance_m.total_cmp(&b.distance_m));
        if !near.fields.is_empty() {
            for neighbour in &mut answer.found {
                neighbour.record.value = project::fields(&neighbour.record.value, &near.fields);
            }
        }
        Ok(answer)
    }

    async fn near_question(&self, near: &Near) -> Result<Question> {
        let mut question = Question::new(&self.shared.secret().await?, &self.access.caller);
        question.part(b"near");
        question.part(self.access.space.name.as_bytes());
        question.part(near.index.as_bytes());
        question.optional(near.owner.as_deref());
        question.part(format!("{:?}", near.circle).as_bytes());
        question.part(near.filter.fingerprint().as_bytes());
        Ok(question)
    }
}
