//! Making a declared unique index of the one that another program keeps in its place: entries
//! `index:{name}:{value}` with a bare id, where ours have the record's key.
//!
//! First every entry is compared with its record, and every record with the entries. As long as something does not
//! fit, nothing is written. Then the index is made like any other, which rewrites each entry. If somebody gets in
//! between, the entries are given back as they were.

use std::collections::HashMap;

use keyward_engine::{
    Commit, Cursor, Entry, ErrorKind, Expect, Expiry, Json, Put, Scan, Tier, Version,
};
use keyward_key::{Key, KeyRange, Pattern, Prefix};
use keyward_records::{CatalogContent, Records, Space};
use keyward_schema::Index;

use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::index::{self, count};
use crate::ledger::Phase;
use crate::migrator::Run;
use crate::transform;

/// Where entries go that fit no record.
const ASIDE: [&str; 2] = ["system", "set-aside"];
/// How many values without an entry are compared with each other. Beyond, the making of the index finds out.
const CLAIMS_MAX: usize = 1_000_000;
/// How often an entry that changes is looked at again.
const LOOKS_MAX: usize = 8;

/// The same, or an adoption, where another program keeps the index that is to be made.
pub(crate) async fn adopting(
    records: &Records,
    catalog: &CatalogContent,
    definition: Definition,
) -> Result<Definition> {
    let Definition::AddIndex { space, index } = definition else { return Ok(definition) };
    let is_declared = records.declarations().any(|declared| declared.name == space);
    let is_new = !catalog.indexes.contains_key(&index.name);
    Ok(match is_declared && is_new && records.is_kept_by_others(&space, &index).await? {
        true => Definition::AdoptIndex { space, index, set_aside: false },
        false => Definition::AddIndex { space, index },
    })
}

/// Where an entry goes that does not fit.
pub(crate) fn aside(entry: &Key) -> Key {
    Prefix::from_segments(ASIDE).join(entry)
}

/// Adopts an index. Each step can be done again.
pub(crate) async fn run(
    run: &mut Run<'_>,
    space: &str,
    index: &Index,
    set_aside: bool,
) -> Result<()> {
    loop {
        match run.phase() {
            Phase::Begin => {
                let catalog = run.records().catalog().await?;
                index::refuse_foreign(run.records(), &catalog, space, index)?;
                Comparing::new(run.records(), space, index)?;
                run.enter(Phase::Compare).await?;
            }
            Phase::Compare => {
                compare(run, space, index, set_aside).await?;
                if run.migration().counts.problems > 0 {
                    // Nothing was changed but what was moved aside.
                    return run.end().await;
                }
                run.enter(Phase::Announce).await?;
            }
            Phase::Restore => {
                restore(run, space, index).await?;
                index::forget(run.records(), &index.name).await?;
                return run.end().await;
            }
            Phase::End => return Ok(()),
            _ => index::add(run, space, index).await?,
        }
    }
}

/// Compares all entries with all records, and moves what does not fit aside if that is wanted.
async fn compare(run: &mut Run<'_>, space: &str, index: &Index, set_aside: bool) -> Result<()> {
    let records = run.records().clone();
    let comparing = Comparing::new(&records, space, index)?;
    let mut after = None;
    loop {
        let (judged, next) = comparing.entries(after, run.page()).await?;
        run.migration().counts.checked += count(judged.len());
        for entry in judged {
            let Verdict::Differs { reason, record } = entry.verdict else { continue };
            let moved = match set_aside {
                true => comparing.set_aside(&entry.key, &entry.entry, record).await?,
                false => false,
            };
            match moved {
                true => run.migration().counts.changed += 1,
                false => run.problem(&entry.key, reason),
            }
            run.beat().await?;
        }
        run.beat().await?;
        after = next;
        if after.is_none() {
            break;
        }
    }
    let (mut claims, mut position) = (Claims::default(), None);
    loop {
        let page = comparing.records(position, run.page(), &mut claims).await?;
        run.migration().counts.checked += count(page.records);
        for (key, reason) in page.problems {
            run.problem(&key, reason);
        }
        run.beat().await?;
        position = page.position;
        if position.is_none() {
            return Ok(());
        }
    }
}

/// Gives the entries of an index that could not be made back as they were.
async fn restore(run: &mut Run<'_>, space: &str, index: &Index) -> Result<()> {
    let records = run.records().clone();
    let comparing = Comparing::new(&records, space, index)?;
    let mut scan = Scan::new(comparing.range()).limit(run.page());
    loop {
        let page = records.store().scan(&scan).await?;
        let rows = page.rows.len();
        for row in page.rows {
            let Some(entry) = row.entry else { continue };
            let Some(id) = comparing.id_in(&entry) else { continue };
            let put = Put {
                value: Json::from_value(&id).map_err(|error| Error::Refused(error.to_string()))?,
                metadata: entry.metadata,
                expiry: entry.expires.map(Expiry::At),
            };
            let commit = Commit::new()
                .check(row.key.clone(), Expect::Version(entry.version))
                .put(row.key, put);
            // Whoever changed it meanwhile has written what is right now.
            let _ = records.store().commit(commit).await?;
        }
        run.reach(None, rows).await?;
        match page.next {
            Some(next) => scan = scan.after(Some(next)),
            None => return Ok(()),
        }
    }
}

/// An index of another program, and the records that its entries name.
pub(crate) struct Comparing<'r> {
    records: &'r Records,
    space: Space,
    index: &'r Index,
    pattern: Pattern,
    /// Which segment of a record's key is its id.
    id_at: usize,
}

/// An entry, and whether it fits its record.
pub(crate) struct Judged {
    pub key: Key,
    pub entry: Entry,
    pub verdict: Verdict,
}

/// Whether an entry fits its record.
pub(crate) enum Verdict {
    /// It is one of ours already.
    Adopted,
    /// It names a record that has the value.
    Fits { record: Key },
    /// It does not, and why; the record that it names, with its version if it is there.
    Differs { reason: String, record: Option<(Key, Option<Version>)> },
}

/// Which record has a value that no entry is there for.
#[derive(Default)]
pub(crate) struct Claims(HashMap<Key, Key>);

/// A page of records that were compared with the entries.
pub(crate) struct Compared {
    pub records: usize,
    pub problems: Vec<(Key, String)>,
    pub position: Option<Vec<u8>>,
}

impl<'r> Comparing<'r> {
    /// Refused where commits take one key, and for records whose keys no bare id makes.
    pub fn new(records: &'r Records, space: &str, index: &'r Index) -> Result<Self> {
        let capabilities = records.store().capabilities();
        if capabilities.tier() != Tier::Atomic {
            return Err(Error::Refused(format!(
                "the index {} is another program's, and adopting it needs commits of several keys: the {} engine \
                 has the {} tier; copy the store to another engine, and adopt it there",
                index.name,
                capabilities.engine,
                capabilities.tier()
            )));
        }
        let space = transform::space(records, space)?;
        let pattern = space.declaration().key.clone();
        let id_at = pattern.as_str().split(':').position(|segment| segment.starts_with('{'));
        let is_plain = pattern.variables().count() == 1 && !pattern.as_str().contains('[');
        let Some(id_at) = id_at.filter(|_| is_plain) else {
            return Err(Error::Refused(format!(
                "the entries of the index {} hold bare ids, and a key {pattern} is not made of one id alone",
                index.name
            )));
        };
        Ok(Self { records, space, index, pattern, id_at })
    }

    fn range(&self) -> KeyRange {
        KeyRange::under(&Prefix::from_segments(["index", &self.index.name]))
    }

    /// The next entries.
    pub async fn entries(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<(Vec<Judged>, Option<Cursor>)> {
        let store = self.records.store();
        let scan = Scan::new(self.range()).limit(limit).after(after);
        let page = store.scan(&scan).await?;
        let rows: Vec<(Key, Entry)> =
            page.rows.into_iter().filter_map(|row| Some((row.key, row.entry?))).collect();
        let named: Vec<Option<Key>> = rows.iter().map(|(_, entry)| self.record_of(entry)).collect();
        let keys: Vec<Key> = named.iter().flatten().cloned().collect();
        let mut found = Vec::with_capacity(keys.len());
        for some in keys.chunks(store.limits().get_keys_max.max(1)) {
            found.extend(store.get_many(some).await?);
        }
        let mut found = found.into_iter();
        let judged = rows.into_iter().zip(named).map(|((key, entry), named)| {
            let record = named.map(|named| (named, found.next().flatten()));
            let verdict = self.judge(&key, &entry, record);
            Judged { key, entry, verdict }
        });
        Ok((judged.collect(), page.next))
    }

    fn judge(&self, key: &Key, entry: &Entry, record: Option<(Key, Option<Entry>)>) -> Verdict {
        let Some((record, found)) = record else {
            let reason = format!("it holds {}, which is no id of a record", shown(&entry.value));
            return Verdict::Differs { reason, record: None };
        };
        let Some(found) = found else {
            let reason = format!("it names {record}, and there is no such record");
            return Verdict::Differs { reason, record: Some((record, None)) };
        };
        match self.entry_keys(&record, &found.value) {
            Ok(keys) if keys.contains(key) => match self.id_in(entry) {
                Some(_) => Verdict::Adopted,
                None => Verdict::Fits { record },
            },
            Ok(_) => {
                let reason = format!("it names {record}, and that record has another value");
                Verdict::Differs { reason, record: Some((record, Some(found.version))) }
            }
            Err(error) => {
                let reason = format!("it names {record}, which cannot be indexed: {error}");
                Verdict::Differs { reason, record: Some((record, Some(found.version))) }
            }
        }
    }

    /// The next records.
    pub async fn records(
        &self,
        position: Option<Vec<u8>>,
        limit: usize,
        claims: &mut Claims,
    ) -> Result<Compared> {
        let walked = self.space.walk_on(position, limit).await?;
        let mut compared = Compared {
            records: walked.records.len(),
            problems: Vec::new(),
            position: walked.position,
        };
        let mut wanted: Vec<(Key, Key)> = Vec::new();
        for record in walked.records {
            match self.entry_keys(&record.key, &record.value) {
                Ok(keys) => wanted.extend(keys.into_iter().map(|key| (key, record.key.clone()))),
                Err(error) => compared.problems.push((record.key, error.to_string())),
            }
        }
        let keys: Vec<Key> = wanted.iter().map(|(key, _)| key.clone()).collect();
        let store = self.records.store();
        let mut entries = Vec::with_capacity(keys.len());
        for some in keys.chunks(store.limits().get_keys_max.max(1)) {
            entries.extend(store.get_many(some).await?);
        }
        for ((key, record), entry) in wanted.into_iter().zip(entries) {
            let other = match entry.and_then(|entry| self.record_of(&entry)) {
                Some(named) => Some(named),
                None => claims.other(&key, &record),
            };
            if let Some(other) = other.filter(|other| *other != record) {
                let reason = format!("it has the value of {key}, which is that of {other}");
                compared.problems.push((record, reason));
            }
        }
        Ok(compared)
    }

    /// Moves an entry aside that fits no record, if that is still so. Whether it is moved, or gone by now.
    async fn set_aside(
        &self,
        key: &Key,
        entry: &Entry,
        record: Option<(Key, Option<Version>)>,
    ) -> Result<bool> {
        let store = self.records.store();
        let base = aside(key);
        for look in 0..LOOKS_MAX {
            // What was moved there before stays.
            let place = match look {
                0 => base.clone(),
                look => base.child(&look.to_string()),
            };
            let put = Put {
                value: entry.value.clone(),
                metadata: entry.metadata.clone(),
                expiry: entry.expires.map(Expiry::At),
            };
            let mut commit = Commit::new()
                .check(place.clone(), Expect::Absent)
                .check(key.clone(), Expect::Version(entry.version.clone()))
                .delete(key.clone())
                .put(place, put);
            if let Some((record, version)) = &record {
                let expect = version.clone().map_or(Expect::Absent, Expect::Version);
                commit = commit.check(record.clone(), expect);
            }
            match store.commit(commit).await {
                Ok(keyward_engine::Outcome::Applied { .. }) => return Ok(true),
                Ok(keyward_engine::Outcome::Conflicted { failed }) if failed == [0] => {}
                // It was changed meanwhile, or its record was: it is told of, and looked at the next time.
                Ok(keyward_engine::Outcome::Conflicted { .. }) => return Ok(false),
                Err(error) if error.kind() == ErrorKind::LimitExceeded => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    fn entry_keys(&self, record: &Key, value: &Json) -> keyward_records::Result<Vec<Key>> {
        let space = &self.space.declaration().name;
        self.records.entry_keys(space, self.index, record, value)
    }

    /// The record that an entry names, by its key or by a bare id.
    fn record_of(&self, entry: &Entry) -> Option<Key> {
        if let Some(record) = Records::named_by(&self.pattern, entry) {
            return Some(record);
        }
        let id: String = serde_json::from_slice(entry.value.as_bytes()).ok()?;
        let segments = self.pattern.as_str().split(':').enumerate();
        let segments = segments.map(|(at, segment)| if at == self.id_at { &*id } else { segment });
        Key::from_segments(segments).ok().filter(|record| self.pattern.matches(record))
    }

    /// The bare id of the record that one of our entries names.
    fn id_in(&self, entry: &Entry) -> Option<String> {
        let record = Records::named_by(&self.pattern, entry)?;
        record.segments().nth(self.id_at).map(|segment| segment.into_owned())
    }
}

impl Claims {
    /// The other record that has a value which no entry is there for.
    fn other(&mut self, key: &Key, record: &Key) -> Option<Key> {
        if let Some(other) = self.0.get(key) {
            return Some(other.clone());
        }
        if self.0.len() < CLAIMS_MAX {
            self.0.insert(key.clone(), record.clone());
        }
        None
    }
}

/// The beginning of a value, for people.
fn shown(value: &Json) -> String {
    const CHARS_MAX: usize = 60;
    let text = value.as_str();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
