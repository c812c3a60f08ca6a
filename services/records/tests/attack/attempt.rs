//! One thing an attacker tries, and what they are told.

use std::fmt::Debug;

use fastrand::Rng;
use keyward_engine::Json;
use keyward_key::Key;
use keyward_records::geo::{BoundingBox, Circle, Point};
use keyward_records::{
    Caller, Draft, Filter, ListedItem, Listing, Merge, Near, Operation, Precondition, Query,
    Record, Records, Result, Space, Within,
};
use keyward_testkit::Replay;

use crate::ammunition::{attacker, bent, bindings, filter, key, record, text, value};
use crate::victim::{INDEXES, NAME, SECRET, SPACES, Victim};

pub struct Attacker {
    records: Records,
    caller: Caller,
    id: String,
    /// Cursors that were given to the victim.
    stolen: Vec<String>,
    /// Cursors that were given to the attacker.
    own: Vec<String>,
}

impl Attacker {
    pub async fn new(victim: &Victim, rng: &mut Rng) -> Self {
        let id = attacker(rng);
        let caller = Caller::user(&id).with_agent(NAME).with_role("editor");
        let mut stolen = Vec::new();
        for (space, index) in [("notes", "by_title"), ("notes", "by_tag"), ("pages", "slug")] {
            let query = Query::index(index).limit(1);
            stolen.extend(victim.space(space).query(&query).await.unwrap().next);
        }
        let listing = Listing::new(keyward_key::Bindings::new()).limit(1);
        stolen.extend(victim.space("notes").list(&listing).await.unwrap().next);
        Self { records: victim.records.clone(), caller, id, stolen, own: Vec::new() }
    }

    /// Tries something, and gives what was told and whether it was refused.
    pub async fn attempt(&mut self, rng: &mut Rng, replay: &mut Replay) -> (String, bool) {
        let name = SPACES[rng.usize(..SPACES.len())];
        let space = self.records.space(name, &self.caller).unwrap();
        let key = self.key(rng, &space);
        let act = rng.u8(..16);
        replay.step(format!("{} does {act} to {name} with {key}", self.id));
        match act {
            0 => {
                let found = space.get(&key).await;
                self.check_seen(name, found.iter().flatten());
                told(found)
            }
            1 => {
                let found = space.get_many(&[key.clone(), self.key(rng, &space)]).await;
                self.check_seen(name, found.iter().flatten().flatten());
                told(found)
            }
            2 => told(space.put(&key, self.draft(rng)).await),
            3 => told(space.create(&key, self.draft(rng)).await),
            4 => {
                let patch = Json::parse(record(rng)).unwrap();
                told(space.merge(&key, Merge::new(patch), Precondition::Any).await)
            }
            5 => told(space.update(&key, seen).await),
            6 => told(space.delete(&key, Precondition::Any).await),
            7 => {
                let operations = vec![
                    Operation::Put(self.key(rng, &space), self.draft(rng)),
                    Operation::Delete(key, Precondition::Any),
                ];
                told(space.together(operations).await)
            }
            8 => told(space.history(&key, None, 10).await),
            9 => told(space.restore(&key, rng.u64(..5), Precondition::Any).await),
            10 => {
                let mut listing = Listing::new(bindings(rng)).limit(rng.usize(1..5));
                if rng.bool() {
                    listing = listing.depth(rng.usize(1..4));
                }
                let listed = space.list(&listing.after(self.cursor(rng))).await;
                if let Ok(listed) = &listed {
                    self.own.extend(listed.next.clone());
                    for item in &listed.items {
                        let owner = match item {
                            ListedItem::Key(key) => key.segments().nth(1),
                            ListedItem::Prefix(prefix) => prefix.segments().nth(1),
                        };
                        assert!(owner.is_none_or(|owner| owner == self.id.as_str()), "{item:?}");
                    }
                }
                told(listed)
            }
            11 => told(space.delete_prefix(self.prefix(rng)).await),
            12 => self.near(rng, &space).await,
            13 => {
                let query = self.query(rng);
                told(space.explain(&query).await)
            }
            _ => {
                let query = self.query(rng);
                let answer = space.query(&query).await;
                if let Ok(answer) = &answer {
                    self.own.extend(answer.next.clone());
                    self.check_seen(name, answer.records.iter());
                }
                told(answer)
            }
        }
    }

    /// Of other users' records, only those of a hybrid space are seen that a shared index finds, without
    /// their metadata.
    fn check_seen<'r>(&self, space: &str, records: impl Iterator<Item = &'r Record>) {
        for record in records {
            let mut segments = record.key.segments().skip(1);
            let owner = segments.next().unwrap_or_default();
            let is_draft = segments.nth(1).is_some_and(|id| id.starts_with('d'));
            let is_shared = space == "posts" && !is_draft && record.metadata.is_none();
            assert!(owner == self.id.as_str() || is_shared, "{record:?}");
        }
    }

    fn key(&self, rng: &mut Rng, space: &Space) -> Key {
        if rng.u8(..4) > 0 {
            return key(rng, &self.id);
        }
        space.key(bindings(rng)).unwrap_or_else(|_| key(rng, &self.id))
    }

    fn prefix(&self, rng: &mut Rng) -> keyward_key::Bindings {
        bindings(rng)
    }

    fn draft(&self, rng: &mut Rng) -> Draft {
        let draft = Draft::new(Json::parse(record(rng)).unwrap());
        if rng.bool() { draft.expecting(Precondition::Present) } else { draft }
    }

    fn cursor(&self, rng: &mut Rng) -> Option<String> {
        let some = |cursors: &[String], rng: &mut Rng| {
            (!cursors.is_empty()).then(|| cursors[rng.usize(..cursors.len())].clone())
        };
        match rng.u8(..5) {
            0 => some(&self.stolen, rng),
            1 => some(&self.own, rng),
            2 => some(&self.own, rng).map(|cursor| bent(rng, &cursor)),
            3 => Some(text(rng)),
            _ => None,
        }
    }

    fn query(&self, rng: &mut Rng) -> Query {
        let mut query = match rng.u8(..5) {
            0 => Query::key(bindings(rng)).allow_scan(),
            _ => Query::index(INDEXES[rng.usize(..INDEXES.len())]),
        };
        for _ in 0..rng.usize(..3) {
            query = query.equal(value(rng));
        }
        query = match rng.u8(..5) {
            0 => query.prefix(text(rng)),
            1 => query.between(value(rng), value(rng)),
            2 => query.descending(),
            _ => query,
        };
        if rng.u8(..3) == 0 {
            query = query.owner(if rng.bool() { NAME.to_owned() } else { text(rng) });
        }
        if rng.bool() {
            query = query.filter(filter(rng));
        }
        if rng.bool() {
            query = query.field("draft".parse().unwrap()).field("title".parse().unwrap());
        }
        query.limit(rng.usize(1..4)).after(self.cursor(rng))
    }

    async fn near(&mut self, rng: &mut Rng, space: &Space) -> (String, bool) {
        let index = if rng.bool() { "geo" } else { INDEXES[rng.usize(..INDEXES.len())] };
        if rng.bool() {
            let circle = Circle::new(Point::new(52.52, 13.4).unwrap(), 1e6).unwrap();
            let mut near = Near::new(index, circle).filter(Filter::default());
            if rng.bool() {
                near = near.owner(NAME);
            }
            return told(space.near(&near).await);
        }
        let area = BoundingBox::new(50.0, 10.0, 55.0, 15.0).unwrap();
        let mut within = Within::new(index, area).limit(1).after(self.cursor(rng));
        within.owner = rng.bool().then(|| NAME.to_owned());
        let answer = space.within(&within).await;
        if let Ok(answer) = &answer {
            self.own.extend(answer.next.clone());
        }
        told(answer)
    }
}

fn seen(record: Option<&Record>) -> Result<Option<Json>> {
    let text = format!("{record:?}");
    assert!(!text.contains(SECRET), "an update was shown {text}");
    Ok(None)
}

/// Everything a caller could read out of an answer.
fn told<T: Debug>(result: Result<T>) -> (String, bool) {
    match result {
        Ok(answer) => (format!("{answer:?}"), false),
        Err(error) => (format!("{error:?} {error}"), true),
    }
}
