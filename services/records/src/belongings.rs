//! Everything that is one user's: to be handed out to them, or removed.

use keyward_engine::{Commit, Cursor, Entry, Order, Row, Scan, Tier, Want};
use keyward_key::{Bindings, Key, KeyRange, Pattern, Prefix};

use crate::access::Part as Owned;
use crate::change::{Precondition, Record, Written};
use crate::history::{self, Past};
use crate::query::{BUDGET_MAX, LIMIT_MAX};
use crate::records::Records;
use crate::space::Space;
use crate::{Caller, Result};

/// Below which word the entries of users lie that are of no space.
const USER: &str = "user";
/// How many entries are removed together.
const REMOVED_TOGETHER_MAX: usize = 100;

/// Everything that is one user's in a store: the records that they own, the earlier versions of these,
/// and what lies below `user:{user}` besides.
///
/// What others wrote *about* the user is not among it, nor who did what in the versions of others'
/// records.
#[derive(Debug)]
pub struct Belongings {
    records: Records,
    parts: Vec<Part>,
    spared: Vec<Pattern>,
    spared_keys: Vec<Key>,
}

/// One thing of a user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Belonging {
    /// A record.
    Record {
        /// The space that it belongs to.
        space: String,
        /// The record.
        record: Record,
    },
    /// An earlier version of a record.
    Past {
        /// The space that it belongs to.
        space: String,
        /// The record's key.
        key: Key,
        /// The version.
        past: Past,
    },
    /// An entry that is no record.
    Entry {
        /// Its key.
        key: Key,
        /// What is there.
        entry: Entry,
    },
}

/// How far a user's things have been handed out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position {
    part: usize,
    after: Option<Vec<u8>>,
}

/// What was removed of a user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Records.
    pub records: usize,
    /// Earlier versions of records.
    pub versions: usize,
    /// Entries that were no records.
    pub entries: usize,
}

#[derive(Debug)]
enum Part {
    /// What the user owns of a space.
    Records { space: Box<Space>, owner: Bindings, range: KeyRange },
    /// Earlier versions of these.
    Past { space: String, range: KeyRange },
    /// What lies below `user:{user}`, and below prefixes that others named.
    Entries(KeyRange),
}

impl Records {
    /// Everything that is one user's.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # use keyward_engine::{Json, Put, Store, SystemClock};
    /// # let store = Store::new(keyward_memory::Memory::new());
    /// # let records = keyward_records::Records::open(store, [], SystemClock)?;
    /// let key = keyward_key::Key::parse("user:ada:theme")?;
    /// records.store().put(key, Put::new(Json::parse(r#""dark""#)?)).await?;
    /// let ada = records.belongings("ada")?;
    /// let (things, next) = ada.page(Default::default()).await?;
    /// assert!(things.len() == 1 && next.is_none());
    /// assert_eq!(ada.remove().await?.entries, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn belongings(&self, user: &str) -> Result<Belongings> {
        let own = Prefix::from_segments([USER, user]).to_key();
        let own_range = own.as_ref().map(KeyRange::subtree);
        let (mut parts, mut past) = (Vec::new(), Vec::new());
        for declaration in self.declarations() {
            // Versions of what lies below `user:{user}`, whoever owns it, and of what is owned elsewhere.
            let mut below: Vec<Key> = own.iter().cloned().collect();
            if let Some(variable) = declaration.ownership.owner() {
                let owner = Bindings::new().with(variable, user);
                let space = Box::new(self.space(&declaration.name, &Caller::operator())?);
                let Owned { range, .. } = space.access.listed(owner.clone())?;
                if !own_range.as_ref().is_some_and(|own| range.is_within(own)) {
                    // The range is that of a key and all below it.
                    below.push(Key::from_stored(range.start().to_vec()));
                }
                parts.push(Part::Records { space, owner, range });
            }
            past.extend(below.into_iter().map(|key| Part::Past {
                space: declaration.name.clone(),
                range: KeyRange::under(&history::prefix(&declaration.name, &key)),
            }));
        }
        parts.extend(own_range.map(Part::Entries));
        // Last, since the removal of a record is a version as well.
        parts.extend(past);
        Ok(Belongings { records: self.clone(), parts, spared: Vec::new(), spared_keys: Vec::new() })
    }
}

impl Belongings {
    /// The same, but entries with keys of these shapes are nobody's: the roots of lock trees, whose
    /// numbers must never begin again.
    #[must_use]
    pub fn sparing(mut self, patterns: impl IntoIterator<Item = Pattern>) -> Self {
        self.spared.extend(patterns);
        self
    }

    /// The same, but these entries are nobody's.
    #[must_use]
    pub fn sparing_keys(mut self, keys: impl IntoIterator<Item = Key>) -> Self {
        self.spared_keys.extend(keys);
        self
    }

    /// The same, with what lies below a prefix: what another part of the program keeps about the user.
    #[must_use]
    pub fn including(mut self, prefix: &Prefix) -> Self {
        self.parts.push(Part::Entries(KeyRange::under(prefix)));
        self
    }

    /// Some of the user's things, and where to go on; `None` at the end. There may be none for now and
    /// still more to come. What changes meanwhile is handed out as it was or as it is.
    pub async fn page(&self, from: Position) -> Result<(Vec<Belonging>, Option<Position>)> {
        let Some(part) = self.parts.get(from.part) else { return Ok((Vec::new(), None)) };
        let (things, after) = match part {
            Part::Records { space, range, .. } => {
                let walk = space.walk(range.clone(), Order::Ascending, Want::Entries);
                let walked = walk.next(from.after, LIMIT_MAX, BUDGET_MAX).await?;
                let name = &space.access.space.name;
                (self.records_of(name, walked.rows)?, walked.position)
            }
            Part::Past { space, range } => {
                let (rows, next) = self.scan(range, from.after, Want::Entries).await?;
                let versions = rows.into_iter().filter_map(|row| version(space, row));
                (versions.collect::<Result<_>>()?, next)
            }
            Part::Entries(range) => {
                let (rows, next) = self.scan(range, from.after, Want::Entries).await?;
                let mut things = Vec::new();
                for row in rows {
                    match self.kind_of(&row.key) {
                        Kind::Entry => {
                            let Row { key, entry } = row;
                            things.extend(entry.map(|entry| Belonging::Entry { key, entry }));
                        }
                        Kind::Record(space) => {
                            things.extend(self.records_of(space, vec![row])?);
                        }
                        Kind::Told(_) | Kind::Spared => {}
                    }
                }
                (things, next)
            }
        };
        let part = from.part + usize::from(after.is_none());
        let next = (part < self.parts.len()).then_some(Position { part, after });
        Ok((things, next))
    }

    /// Removes everything, with its index entries; what an error leaves behind, the next call removes.
    /// What is made meanwhile may stay.
    pub async fn remove(&self) -> Result<Removed> {
        let mut removed = Removed::default();
        for part in &self.parts {
            match part {
                Part::Records { space, owner, .. } => {
                    removed.records += space.delete_prefix(owner.clone()).await?;
                }
                Part::Past { range, .. } => removed.versions += self.remove_past(range).await?,
                Part::Entries(range) => self.remove_entries(range, &mut removed).await?,
            }
        }
        Ok(removed)
    }

    async fn remove_past(&self, range: &KeyRange) -> Result<usize> {
        let (mut count, mut after) = (0, None);
        loop {
            let (rows, next) = self.scan(range, after, Want::Keys).await?;
            let keys: Vec<Key> = rows.into_iter().map(|row| row.key).collect();
            self.delete(&keys).await?;
            count += keys.len();
            match next {
                Some(next) => after = Some(next),
                None => return Ok(count),
            }
        }
    }

    async fn remove_entries(&self, range: &KeyRange, removed: &mut Removed) -> Result<()> {
        let mut after = None;
        loop {
            let (rows, next) = self.scan(range, after, Want::Keys).await?;
            let mut entries = Vec::new();
            for Row { key, .. } in rows {
                match self.kind_of(&key) {
                    Kind::Record(space) | Kind::Told(space) => {
                        let space = self.records.space(space, &Caller::operator())?;
                        let gone = space.delete(&key, Precondition::Any).await?;
                        removed.records += usize::from(gone == Written::Removed);
                    }
                    Kind::Entry => entries.push(key),
                    Kind::Spared => {}
                }
            }
            self.delete(&entries).await?;
            removed.entries += entries.len();
            match next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Deletes entries that nothing else depends on.
    async fn delete(&self, keys: &[Key]) -> Result<()> {
        let store = self.records.store();
        let together = match store.capabilities().tier() {
            Tier::Atomic => store.limits().commit_keys_max.clamp(1, REMOVED_TOGETHER_MAX),
            _ => 1,
        };
        for some in keys.chunks(together) {
            let commit = some.iter().cloned().fold(Commit::new(), Commit::delete);
            // Without checks nothing conflicts.
            let _ = store.commit(commit).await?;
        }
        Ok(())
    }

    async fn scan(
        &self,
        range: &KeyRange,
        after: Option<Vec<u8>>,
        want: Want,
    ) -> Result<(Vec<Row>, Option<Vec<u8>>)> {
        let scan = Scan::new(range.clone()).after(after.map(Cursor::new)).limit(LIMIT_MAX);
        let page = self.records.store().scan(&Scan { want, ..scan }).await?;
        Ok((page.rows, page.next.map(|next| next.as_bytes().to_vec())))
    }

    fn records_of(&self, space: &str, rows: Vec<Row>) -> Result<Vec<Belonging>> {
        let stored = rows
            .into_iter()
            .filter_map(|Row { key, entry }| Record::stored(key, entry?).transpose());
        stored
            .map(|record| Ok(Belonging::Record { space: space.to_owned(), record: record? }))
            .collect()
    }

    /// What an entry below `user:{user}` is.
    fn kind_of(&self, key: &Key) -> Kind<'_> {
        for part in &self.parts {
            if let Part::Records { space, range, .. } = part
                && range.contains(key)
                && space.access.space.key.matches(key)
            {
                return Kind::Told(&space.access.space.name);
            }
        }
        let mut spaces = self.records.declarations();
        match spaces.find(|space| space.key.matches(key)) {
            Some(space) => Kind::Record(&space.name),
            None if self.spared.iter().any(|pattern| pattern.matches(key))
                || self.spared_keys.contains(key) =>
            {
                Kind::Spared
            }
            None => Kind::Entry,
        }
    }
}

enum Kind<'b> {
    /// A record of the user's own, told of as such.
    Told(&'b str),
    /// A record of a space whose records have no owners, or another one.
    Record(&'b str),
    Spared,
    Entry,
}

/// The version of a record that a row is.
fn version(space: &str, row: Row) -> Option<Result<Belonging>> {
    let entry = row.entry?;
    let past = match history::read(&row.key, &entry.value) {
        Ok(past) => past,
        Err(error) => return Some(Err(error)),
    };
    let key = history::record_key(&row.key)?;
    Some(Ok(Belonging::Past { space: space.to_owned(), key, past }))
}
