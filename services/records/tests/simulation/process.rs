//! A process: records on an engine that fails, and somebody who uses them.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use keyward_engine::{Error as StoreError, ErrorKind, Json, Scan, Store, Tier};
use keyward_key::{Key, KeyRange};
use keyward_memory::Memory;
use keyward_records::{
    Caller, Draft, Error, Flaw, Precondition, Query, Records, Result, Space, Written,
};
use keyward_schema::Schema;
use keyward_testkit::{Faults, FaultyEngine, Rates, TestClock};

use crate::journal::{Fate, Journal};
use crate::truth::{RECORDS, Truth, key};

const OPERATIONS: usize = 6;
const QUERIES: usize = 8;
const EMAILS: [&str; 2] = ["a", "b"];
const TAGS: [&str; 3] = ["x", "y", "z"];
/// What some records have besides the label that all of them have: before it and after it.
const LABELS: [&str; 2] = ["a", "z"];

const SCHEMA: &str = r#"
[stores.app]
[spaces.people]
key = "user:{user}"
ownership = "hybrid"
share = ["email", "labels"]
[spaces.people.indexes.email]
field = "email"
type = "text"
unique = true
scope = "shared"
[spaces.people.indexes.tag]
field = "tags"
type = "text"
multi = true
scope = "owner"
[spaces.people.indexes.label]
field = "labels"
type = "text"
multi = true
scope = "shared"
"#;

pub struct Process {
    engine: FaultyEngine,
    clock: TestClock,
    records: Records,
    people: Space,
    rng: Rng,
}

impl Process {
    /// A process whose calls are late, fail, get lost; and that crashes, if it may.
    pub fn new(memory: &Memory, clock: &TestClock, mut rng: Rng, crashes: bool) -> Self {
        let rates = Rates {
            fail: 0.02,
            unanswered: if crashes { 0.03 } else { 0.0 },
            delay: 0.8,
            delay_max: Duration::from_millis(10),
            crash: if crashes { 0.03 } else { 0.0 },
            ..Rates::default()
        };
        Self::with(memory, clock, Faults::seeded(rng.u64(..), rates), rng)
    }

    pub fn healthy(memory: &Memory, clock: &TestClock) -> Self {
        Self::with(memory, clock, Faults::none(), Rng::with_seed(0))
    }

    fn with(memory: &Memory, clock: &TestClock, faults: Faults, rng: Rng) -> Self {
        let engine = FaultyEngine::new(Arc::new(memory.clone()), faults);
        let (records, people) = open(&engine, clock);
        Self { engine, clock: clock.clone(), records, people, rng }
    }

    /// Starts again after a crash, with nothing remembered.
    fn restart(&mut self) {
        self.engine = self.engine.revive();
        (self.records, self.people) = open(&self.engine, &self.clock);
    }

    pub async fn write(mut self, writer: u64, journal: Rc<RefCell<Journal>>, truth: Truth) {
        for operation in 0..OPERATIONS {
            let id = format!("{writer}-{operation}");
            let record = self.rng.usize(..RECORDS);
            let act = self.rng.u8(..10);
            let value = self.value(&id);
            let begun = journal.borrow_mut().begin(id, record, act < 2);
            let outcome = self.act(act, record, value).await;
            truth.check_unique();
            truth.check_nothing_missing();
            journal.borrow_mut().end(begun, fate(outcome));
            if self.engine.is_crashed() {
                journal.borrow_mut().crashed();
                self.restart();
            }
        }
    }

    async fn act(&mut self, act: u8, record: usize, value: Json) -> Result<Written> {
        let key = key(record);
        match act {
            0 | 1 => self.people.delete(&key, Precondition::Any).await,
            2 | 3 => self.people.create(&key, Draft::new(value)).await,
            4 => self.people.update(&key, |_| Ok(Some(value.clone()))).await,
            5 => match self.people.get(&key).await? {
                Some(seen) => {
                    let expect = Precondition::Version(seen.version);
                    self.people.put(&key, Draft::new(value).expecting(expect)).await
                }
                None => Ok(Written::Unchanged { version: None }),
            },
            _ => self.people.put(&key, Draft::new(value)).await,
        }
    }

    fn value(&mut self, id: &str) -> Json {
        let email = self.rng.choice(EMAILS).filter(|_| self.rng.u8(..4) > 0);
        let email = email.map_or("null".to_owned(), |email| format!("\"{email}\""));
        let tags = self.some_of(&TAGS);
        let mut labels = self.some_of(&LABELS);
        labels.push("\"m\"".into());
        let (tags, labels) = (tags.join(","), labels.join(","));
        let value =
            format!(r#"{{"id":"{id}","email":{email},"tags":[{tags}],"labels":[{labels}]}}"#);
        Json::parse(value).unwrap()
    }

    fn some_of(&mut self, texts: &[&str]) -> Vec<String> {
        texts.iter().filter(|_| self.rng.bool()).map(|text| format!("\"{text}\"")).collect()
    }

    pub async fn read(mut self, journal: Rc<RefCell<Journal>>, truth: Truth) {
        for _ in 0..QUERIES {
            if self.rng.u8(..3) == 0 {
                self.page_through_labels(&journal, &truth).await;
                continue;
            }
            let since = journal.borrow_mut().moment();
            let record = self.rng.usize(..RECORDS);
            let (query, tag, email) = match self.rng.bool() {
                true => {
                    let tag = TAGS[self.rng.usize(..TAGS.len())];
                    (Query::index("tag").owner(record.to_string()).equal(tag), Some(tag), None)
                }
                false => {
                    let email = EMAILS[self.rng.usize(..EMAILS.len())];
                    (Query::index("email").equal(email), None, Some(email))
                }
            };
            let Ok(answer) = self.people.query(&query).await else { continue };
            let values = truth.values();
            for (record, value) in values.iter().enumerate() {
                if !journal.borrow().was_left_alone(record, since) {
                    continue;
                }
                let asked = email.is_some() || answer_is_about(&query, record);
                let matches = value.as_ref().is_some_and(|value| match (tag, email) {
                    (Some(tag), _) => value.tags.iter().any(|has| has == tag),
                    (_, email) => value.email.as_deref() == email,
                });
                let found = answer.records.iter().any(|found| found.key == key(record));
                assert_eq!(found, asked && matches, "{query:?} {value:?} {answer:?}");
            }
        }
    }

    /// Reads the labels page by page: each record has one of them all the time, and others now and
    /// then. What is there all the while comes, whatever else changes in it; what nobody touches comes
    /// once.
    async fn page_through_labels(&mut self, journal: &Rc<RefCell<Journal>>, truth: &Truth) {
        let since = journal.borrow_mut().moment();
        let before = truth.values();
        let mut query = Query::index("label").limit(self.rng.usize(1..4));
        if self.rng.bool() {
            query = query.descending();
        }
        if self.rng.bool() {
            query = query.between("a", "z");
        }
        let mut found = [0; RECORDS];
        loop {
            let Ok(answer) = self.people.query(&query).await else { return };
            for (record, times) in found.iter_mut().enumerate() {
                *times += answer.records.iter().filter(|it| it.key == key(record)).count();
            }
            match answer.next {
                Some(next) => query = query.after(Some(next)),
                None => break,
            }
        }
        let journal = journal.borrow();
        for (record, value) in before.iter().enumerate() {
            if journal.was_left_alone(record, since) {
                assert_eq!(found[record], usize::from(value.is_some()), "{query:?} {value:?}");
            } else if value.is_some() && journal.was_kept(record, since) {
                assert_ne!(found[record], 0, "{query:?} {value:?}");
            }
        }
    }

    /// Removes what the crashes left behind.
    pub async fn settle(&self, tier: Tier, truth: &Truth) {
        truth.check_unique();
        truth.check_nothing_missing();
        if tier == Tier::Recoverable {
            self.repair().await;
        }
        truth.check_nothing_left_over();
        truth.check_no_marker();
    }

    async fn repair(&self) {
        let inspector = self.records.inspector().await.unwrap();
        let everything = Scan::new(KeyRange::all()).limit(10_000);
        let rows = self.records.store().scan(&everything).await.unwrap().rows;
        for finding in inspector.inspect(&rows).await.unwrap() {
            assert!(
                finding.flaw != Flaw::MissingEntry && finding.flaw.is_mendable(),
                "{finding:?}"
            );
            assert!(inspector.mend(&finding).await.unwrap(), "{finding:?}");
        }
    }

    /// Asks everything once more, when nothing happens any more.
    pub async fn check(&self, truth: &Truth) {
        for email in EMAILS {
            let answer = self.people.query(&Query::index("email").equal(email)).await.unwrap();
            let has = |value: &&crate::truth::Value| value.email.as_deref() == Some(email);
            let holders = truth.values().iter().flatten().filter(has).count();
            assert_eq!(answer.records.len(), holders);
        }
        // What crashed writers claimed can be taken by others.
        for record in 0..RECORDS {
            let deleted = self.people.delete(&key(record), Precondition::Any).await.unwrap();
            assert!(deleted.is_accepted());
        }
        let value = format!(r#"{{"id":"last","email":"{}","tags":[]}}"#, EMAILS[0]);
        let key = Key::from_segments(["user", "last"]).unwrap();
        let last = Draft::new(Json::parse(value).unwrap());
        assert!(self.people.put(&key, last).await.unwrap().is_accepted());
        assert!(self.people.delete(&key, Precondition::Any).await.unwrap().is_accepted());
    }
}

fn answer_is_about(query: &Query, record: usize) -> bool {
    query.owner.as_deref() == Some(record.to_string().as_str())
}

fn open(engine: &FaultyEngine, clock: &TestClock) -> (Records, Space) {
    let schema = Schema::parse(SCHEMA, "schema.toml").unwrap_or_else(|p| panic!("{p}"));
    let store = Store::new(engine.clone());
    let records = Records::open(store, schema.spaces, clock.clone()).unwrap();
    let people = records.space("people", &Caller::operator()).unwrap();
    (records, people)
}

fn fate(outcome: Result<Written>) -> Fate {
    match outcome {
        Ok(Written::Applied { .. } | Written::Removed) => Fate::Done,
        Ok(Written::Unchanged { .. } | Written::Conflicted { .. }) => Fate::NotDone,
        Err(Error::Store(error)) if is_unknown(&error) => Fate::Unknown,
        Err(_) => Fate::NotDone,
    }
}

fn is_unknown(error: &StoreError) -> bool {
    error.kind() == ErrorKind::OutcomeUnknown
}
