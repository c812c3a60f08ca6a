//! What a store knows about its migrations: one row each, at `system:migration:{id}`.

use std::time::Duration;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use keyward_engine::{Commit, Entry, Expect, Json, Outcome, Put, Scan, Store, Tier, Version};
use keyward_key::{Key, KeyRange, Prefix};
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::index::count;
use crate::pace::Pause;

const SEGMENTS: [&str; 2] = ["system", "migration"];
/// How many migrations may begin in one moment.
const SAME_MOMENT_MAX: usize = 1_000;
const ROWS_PER_PAGE: usize = 100;

/// A migration, as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    /// Its name: the moment it began, and what it does.
    pub id: String,
    /// What it does.
    pub definition: Definition,
    /// How it stands.
    pub state: State,
    /// What it is doing now, or did last.
    pub phase: Phase,
    /// How far it came in this phase.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) position: Option<String>,
    /// What it has done.
    pub counts: Counts,
    /// The first things that could not be done, at most [`Migration::PROBLEMS_MAX`].
    #[serde(default)]
    pub problems: Vec<Problem>,
    /// When it began.
    #[serde(with = "keyward_engine::moment")]
    pub started: Timestamp,
    /// When it ended.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        with = "keyward_engine::moment::optional"
    )]
    pub finished: Option<Timestamp>,
    /// Who began it.
    pub by: String,
    /// How often it was begun or gone on with.
    pub runs: u32,
    /// Who runs it, or ran it last; nobody once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,
    /// Whether the last writer wins on the store's engine: then a change that somebody made meanwhile
    /// may be missing from the index until a doctor has looked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub best_effort: bool,
}

/// One run of a migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    /// Who started it.
    pub by: String,
    /// When it was started.
    #[serde(with = "keyward_engine::moment")]
    pub since: Timestamp,
}

/// How a migration stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It runs, or was stopped: running it again goes on.
    Running,
    /// All of it is done.
    Done,
    /// It came to its end, but some of it could not be done: the problems say what.
    Failed,
    /// Another one took its place.
    Abandoned,
}

/// What a migration is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Finding out what there is.
    Begin,
    /// Comparing the entries that another program wrote with the records.
    Compare,
    /// Giving back its entries to the other program.
    Restore,
    /// Removing entries of an index.
    Sweep,
    /// Telling every writer of a new index.
    Announce,
    /// Going through all records.
    Walk,
    /// Checking that every record has its entries, or its new key.
    CheckRecords,
    /// Checking that every entry has its record.
    CheckEntries,
    /// Taking back an index that could not be made.
    Withdraw,
    /// Nothing more.
    End,
}

/// What a migration has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Records looked at.
    pub records: u64,
    /// Records changed, or moved.
    pub changed: u64,
    /// Index entries written.
    pub entries: u64,
    /// Index entries removed.
    pub swept: u64,
    /// Records and entries checked at the end; after moving records, those that still have an old
    /// key.
    pub checked: u64,
    /// Things that could not be done.
    pub problems: u64,
}

/// Something that could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// To which record, as colon text; or the pattern of several.
    pub key: String,
    /// Why not.
    pub message: String,
}

impl Migration {
    /// How many problems are named; all are counted.
    pub const PROBLEMS_MAX: usize = 100;

    pub(crate) fn problem(&mut self, key: String, message: String) {
        self.counts.problems += 1;
        if self.problems.len() < Self::PROBLEMS_MAX {
            self.problems.push(Problem { key, message });
        }
    }

    pub(crate) fn position(&self) -> Result<Option<Vec<u8>>> {
        let Some(text) = &self.position else { return Ok(None) };
        let bytes = HEXLOWER.decode(text.as_bytes());
        let damaged = |_| Error::Damaged(format!("{} has no position", self.id));
        bytes.map(Some).map_err(damaged)
    }

    pub(crate) fn set_position(&mut self, position: Option<&[u8]>) {
        self.position = position.map(|bytes| HEXLOWER.encode(bytes));
    }
}

/// The rows of a store.
pub(crate) struct Ledger<'s> {
    pub store: &'s Store,
    pub pause: &'s dyn Pause,
}

/// How long a run without a sign of life is taken for alive. A run gives one about every [`BEAT`]: at the end of
/// a page, which is short where records take long, and between two records whose values change. One that is
/// silent for longer, because a single record takes that long, can be taken over; then only the new run goes
/// on, since each writes the row by its version.
const SILENCE_MAX: Duration = Duration::from_secs(6);
/// How often a row is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(250);
/// How long a run waits or works without a sign of life, if it can help it.
pub(crate) const BEAT: Duration = Duration::from_secs(2);

/// A row as it was read or written last.
pub(crate) struct Held {
    pub migration: Migration,
    /// The migration as the row has it.
    written: Migration,
    version: Option<Version>,
}

impl Runner {
    fn new(by: &str, since: Timestamp) -> Self {
        Self { by: by.to_owned(), since }
    }
}

impl Held {
    /// What writes the row as this migration, unless somebody else has written it since.
    pub fn saving(&self, migration: &Migration) -> Result<Commit> {
        let key = key(&migration.id)?;
        let damaged = |error: keyward_engine::JsonError| Error::Damaged(error.to_string());
        let put = Put::new(Json::from_value(migration).map_err(damaged)?);
        let expect = self.version.clone().map_or(Expect::Absent, Expect::Version);
        Ok(Commit::new().check(key.clone(), expect).put(key, put))
    }

    /// The migration with so many records more that were moved, and what writes it, for the commit that
    /// moves them.
    pub fn moving(&self, records: usize) -> Result<(Migration, Commit)> {
        let mut migration = self.migration.clone();
        migration.counts.records += count(records);
        migration.counts.changed += count(records);
        let commit = self.saving(&migration)?;
        Ok((migration, commit))
    }

    /// The row was written as this migration, together with other things.
    pub fn saved(&mut self, migration: Migration, version: Option<Version>) {
        self.written.clone_from(&migration);
        self.migration = migration;
        self.version = version;
    }
}

impl Ledger<'_> {
    /// Goes on with the migration that does the same, or begins one. Others about the same index are
    /// given up. Refused while another run of one of them gives signs of life: [`Error::Running`].
    pub async fn begin(&self, definition: Definition, by: &str, now: Timestamp) -> Result<Held> {
        let mut same = None;
        let running = self.rows(|migration| migration.state == State::Running).await?;
        for mut held in running {
            let known = &held.migration.definition;
            let about_it = known.index().is_some() && known.index() == definition.index();
            let is_same = same.is_none() && known.is_same_work(&definition);
            if is_same || about_it {
                self.refuse_living(&held).await?;
            }
            if is_same {
                held.migration.runs = held.migration.runs.saturating_add(1);
                held.migration.runner = Some(Runner::new(by, now));
                self.save(&mut held).await?;
                same = Some(held);
            } else if about_it {
                held.migration.state = State::Abandoned;
                held.migration.finished = Some(now);
                self.save(&mut held).await?;
            }
        }
        match same {
            Some(held) => Ok(held),
            None => {
                let held = self.create(definition, by, now).await?;
                self.give_way(held, now).await
            }
        }
    }

    /// Waits until a run has been silent for long enough to be dead; an error as soon as it gives a sign
    /// of life. Measured by waiting, not by comparing clocks: those of two machines may differ.
    async fn refuse_living(&self, held: &Held) -> Result<()> {
        let Some(Runner { by, since }) = &held.migration.runner else { return Ok(()) };
        let key = key(&held.migration.id)?;
        let mut silent = Duration::ZERO;
        while silent < SILENCE_MAX {
            self.pause.pause(LOOK).await;
            silent += LOOK;
            let seen = self.store.get(&key).await?.map(|entry| entry.version);
            if seen != held.version {
                let (id, by, since) = (held.migration.id.clone(), by.clone(), *since);
                return Err(Error::Running { id, by, since });
            }
        }
        Ok(())
    }

    /// Of several that begin the same at once, lets the one with the first name go on: whoever comes
    /// later finds it, and whoever came earlier is overtaken by it.
    async fn give_way(&self, mut mine: Held, now: Timestamp) -> Result<Held> {
        let running = self.rows(|migration| migration.state == State::Running).await?;
        for mut other in running {
            let is_same = other.migration.definition.is_same_work(&mine.migration.definition);
            if !is_same || other.migration.id == mine.migration.id {
                continue;
            }
            let first = other.migration.id.clone();
            let gives_way = if mine.migration.id < first { &mut other } else { &mut mine };
            gives_way.migration.state = State::Abandoned;
            gives_way.migration.finished = Some(now);
            match self.save(gives_way).await {
                // Somebody else said so first.
                Ok(()) | Err(Error::Overtaken { .. }) => {}
                Err(error) => return Err(error),
            }
            if mine.migration.state == State::Abandoned {
                return Err(Error::Overtaken { id: first });
            }
        }
        Ok(mine)
    }

    async fn create(&self, definition: Definition, by: &str, now: Timestamp) -> Result<Held> {
        let subject = definition.index().unwrap_or(definition.space());
        let name = format!("{}-{}-{subject}", now.strftime("%Y%m%dT%H%M%SZ"), definition.kind());
        for n in 1..=SAME_MOMENT_MAX {
            let id = if n == 1 { name.clone() } else { format!("{name}-{n}") };
            if self.store.get(&key(&id)?).await?.is_some() {
                continue;
            }
            let migration = Migration {
                id,
                definition: definition.clone(),
                state: State::Running,
                phase: Phase::Begin,
                position: None,
                counts: Counts::default(),
                problems: Vec::new(),
                started: now,
                finished: None,
                by: by.to_owned(),
                runs: 1,
                runner: Some(Runner::new(by, now)),
                best_effort: self.store.capabilities().tier() == Tier::Advisory,
            };
            let mut held = Held { written: migration.clone(), migration, version: None };
            match self.save(&mut held).await {
                Err(Error::Overtaken { .. }) => {}
                saved => return saved.map(|()| held),
            }
        }
        Err(Error::Refused(format!("there are {SAME_MOMENT_MAX} migrations like {name} already")))
    }

    /// Writes a row, unless somebody else did since it was read.
    pub async fn save(&self, held: &mut Held) -> Result<()> {
        held.written.clone_from(&held.migration);
        self.touch(held).await
    }

    /// Writes a row again as it is, unless somebody else has written it: a sign of life in the middle of a
    /// page. What was counted since is not in it, because whoever goes on begins with the page and counts
    /// it again.
    pub async fn touch(&self, held: &mut Held) -> Result<()> {
        let mut commit = held.saving(&held.written)?;
        if self.store.capabilities().tier() == Tier::Advisory {
            commit.checks.clear();
        }
        match self.store.commit(commit).await? {
            Outcome::Applied { versions, .. } => {
                held.version = versions.into_iter().next().flatten();
                Ok(())
            }
            Outcome::Conflicted { .. } => Err(Error::Overtaken { id: held.migration.id.clone() }),
        }
    }

    /// All rows that are asked for, the oldest first where the engine keeps order.
    pub async fn rows(&self, wanted: impl Fn(&Migration) -> bool) -> Result<Vec<Held>> {
        let range = KeyRange::under(&Prefix::from_segments(SEGMENTS));
        let mut rows = Vec::new();
        let mut after = None;
        loop {
            let scan = Scan::new(range.clone()).after(after).limit(ROWS_PER_PAGE);
            let page = self.store.scan(&scan).await?;
            for row in page.rows {
                let Some(entry) = row.entry else { continue };
                let held = read(&row.key, entry)?;
                if wanted(&held.migration) {
                    rows.push(held);
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(rows),
            }
        }
    }
}

fn key(id: &str) -> Result<Key> {
    let [first, second] = SEGMENTS;
    Key::from_segments([first, second, id]).map_err(|error| Error::Damaged(error.to_string()))
}

fn read(key: &Key, entry: Entry) -> Result<Held> {
    let migration: Migration = serde_json::from_slice(entry.value.as_bytes())
        .map_err(|error| Error::Damaged(format!("{key} is unreadable: {error}")))?;
    Ok(Held { written: migration.clone(), migration, version: Some(entry.version) })
}
