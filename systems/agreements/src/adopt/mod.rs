//! Agreements that a Forge app wrote, taken over: from its own keys in the workspace's store, or from an export.
//!
//! | key | what becomes of it |
//! |---|---|
//! | `{page}:policy:{source}[:{language}]` | a document, with the cache's metadata |
//! | `{page}:issue:{issue}` | an issue with a state and a history |
//! | `{page}` (the app's lock catalog), `job:{job}` | moved to `system:adopted:…`: what they say is of processes that run no more |
//! | `system:purged` | a mark that ends when the next purge is due; the original is moved to `system:adopted:…` |
//!
//! A value is a lock catalog if its locks are named as the app names them, or if it has only `version` and
//! `locks` and the page has policies or issues.
//!
//! Each key is one commit that checks what was read, and what is ours already is passed over: so it can be killed at
//! any point, and doing it again changes nothing. What a member said before it was converted stays in the member
//! `adopted`; members that are not known stay as they are.

mod document;
mod issue;
mod object;
mod transient;

use std::collections::HashSet;
use std::io::BufRead;

use jiff::Timestamp;
use keyward_engine::{Commit, Entry, Expect, Json, Put, Scan};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_queue::Error as QueueError;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use transient::Catalog;

use crate::page::UPLOADS;
use crate::{Error, PageId, Result, SourceId, Workspace, places};

/// Where originals go that are not taken over in their own place.
const ASIDE: [&str; 2] = ["system", "adopted"];
/// How many entries are read at once.
const PAGE: usize = 100;
/// How often an entry is read again because it changes.
const TRIES: usize = 8;
/// Why an entry that could be a lock catalog is left alone.
const NOT_A_CATALOG: &str = "not recognized: it looks like a lock catalog, but its locks are not named as the \
     app names them, and it has other members or the page has no policies and issues";
/// The longest line of an export.
const LINE_BYTES_MAX: u64 = 32 << 20;

/// What was taken over, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Adopted {
    /// Documents: originals and translations.
    pub policies: u64,
    /// Issues.
    pub issues: u64,
    /// Jobs of the app, moved aside.
    pub jobs: u64,
    /// Lock catalogs of the app, moved aside.
    pub locks: u64,
    /// Whether the time of the app's last purge was taken over.
    pub purged: bool,
    /// Entries that are a workspace's already.
    pub already: u64,
    /// Entries that are nobody's here: they are left alone.
    pub unknown: u64,
    /// Entries that could not be taken over: they are left as they are.
    pub left: u64,
    /// The first of them, at most [`Adopted::PROBLEMS_MAX`].
    pub problems: Vec<NotAdopted>,
}

/// An entry that could not be taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotAdopted {
    /// Its key; of an export, with the line.
    pub key: String,
    /// Why.
    pub reason: String,
}

impl Adopted {
    /// How many entries that could not be taken over are named.
    pub const PROBLEMS_MAX: usize = 1_000;

    /// How many entries are taken over.
    pub fn total(&self) -> u64 {
        self.policies + self.issues + self.jobs + self.locks + u64::from(self.purged)
    }

    fn leave(&mut self, key: impl Into<String>, reason: impl Into<String>) {
        self.left += 1;
        if self.problems.len() < Self::PROBLEMS_MAX {
            self.problems.push(NotAdopted { key: key.into(), reason: reason.into() });
        }
    }

    fn count(&mut self, what: What) {
        match what {
            What::Policy => self.policies += 1,
            What::Issue => self.issues += 1,
            What::Job => self.jobs += 1,
            What::Locks => self.locks += 1,
            What::Purged => self.purged = true,
        }
    }
}

/// What a key of the app holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Policy,
    Issue,
    Job,
    Locks,
    Purged,
}

/// What a key is for.
#[derive(Debug)]
enum Kind {
    Policy { source: SourceId, language: Option<String> },
    Issue { page: PageId, id: String },
    Job { id: String },
    Page { page: PageId },
    Purged,
}

impl Kind {
    fn of(key: &Key) -> Option<Result<Self, String>> {
        let segments: Vec<_> = key.segments().take(5).collect();
        let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
        let page = |text: &str| PageId::new(text).map_err(|error| error.to_string());
        let source = |text: &str| SourceId::new(text).map_err(|error| error.to_string());
        let policy = |at: &str, from: &str, language: Option<&str>| {
            page(at)?;
            let language = language.map(str::to_owned);
            Ok(Self::Policy { source: source(from)?, language })
        };
        match segments[..] {
            ["job", id] => Some(Ok(Self::Job { id: id.to_owned() })),
            ["system", "purged"] => Some(Ok(Self::Purged)),
            [at, "policy", from] => Some(policy(at, from, None)),
            [at, "policy", from, language] => Some(policy(at, from, Some(language))),
            [at, "issue", id] => Some(page(at).map(|page| Self::Issue { page, id: id.to_owned() })),
            [at] => page(at).ok().map(|page| Ok(Self::Page { page })),
            _ => None,
        }
    }
}

/// What is to be written for an entry.
#[derive(Debug)]
enum Taken {
    /// This, in the entry's own place.
    As(What, Put),
    /// The original, aside; and this in its place, if anything.
    Aside(What, Option<Put>),
    /// It is ours already.
    Already,
    /// It is nobody's here.
    Unknown,
    /// It cannot be taken over, and why.
    Not(String),
}

/// A line of an export.
#[derive(Deserialize)]
struct Line {
    key: String,
    value: Box<RawValue>,
}

impl Workspace {
    /// Takes over what a Forge app wrote into the workspace's store, or only tells what it would.
    ///
    /// May be killed at any point, and done again. The app should not run meanwhile: a page whose locks it has taken
    /// in the last two minutes is left alone.
    pub async fn adopt(&self, apply: bool) -> Result<Adopted> {
        let mut adopted = Adopted::default();
        let mut scan = Scan::new(KeyRange::all()).limit(PAGE);
        loop {
            let page = self.store().scan(&scan).await?;
            for row in page.rows {
                if let Some(entry) = row.entry
                    && !is_own(&row.key)
                {
                    self.adopt_entry(row.key, entry, apply, &mut adopted).await?;
                }
            }
            match page.next {
                Some(next) => scan = scan.after(Some(next)),
                None => return Ok(adopted),
            }
        }
    }

    /// Takes over an export of such an app: a line `{"key":…,"value":…}` for each entry. What the store has already is
    /// never overwritten, and what is a workspace's already is written as it is. The export is read twice:
    /// issues refer to documents, and lock catalogs are known by the content of their pages.
    pub async fn adopt_export<R: BufRead>(
        &self,
        open: impl Fn() -> std::io::Result<R>,
        apply: bool,
    ) -> Result<Adopted> {
        let mut adopted = Adopted::default();
        let mut pages = HashSet::new();
        for is_second in [false, true] {
            let mut lines = open().map_err(|error| unread(1, &error))?;
            for number in 1_u64.. {
                let mut text = Vec::new();
                let mut line = std::io::Read::take(&mut lines, LINE_BYTES_MAX);
                let read =
                    line.read_until(b'\n', &mut text).map_err(|error| unread(number, &error))?;
                if read == 0 {
                    break;
                }
                if text.trim_ascii().is_empty() {
                    continue;
                }
                let read = read_line(&text);
                match read {
                    Ok((key, value)) => {
                        if !is_second {
                            pages.extend(page_with_content(&key));
                        }
                        let kind = Kind::of(&key);
                        let is_late =
                            matches!(kind, Some(Ok(Kind::Issue { .. } | Kind::Page { .. })));
                        if is_late == is_second {
                            self.adopt_line(key, value, &pages, apply, &mut adopted).await?;
                        }
                    }
                    Err(reason) if !is_second => adopted.leave(format!("line {number}"), reason),
                    Err(_) => {}
                }
            }
        }
        Ok(adopted)
    }

    /// One entry of the store.
    async fn adopt_entry(
        &self,
        key: Key,
        mut entry: Entry,
        apply: bool,
        adopted: &mut Adopted,
    ) -> Result<()> {
        for _ in 0..TRIES {
            let taken = self.taken(&key, &entry.value, Some(&entry), &HashSet::new()).await?;
            let Some((what, commit)) = settle(&key, &entry.value, taken, adopted, |commit| {
                commit.check(key.clone(), Expect::Version(entry.version.clone()))
            }) else {
                return Ok(());
            };
            if !apply || self.store().commit(commit).await?.is_applied() {
                adopted.count(what);
                return Ok(());
            }
            let keys = [key.clone(), aside(&key)];
            let mut found = self.store().get_many(&keys).await?.into_iter();
            match (found.next().flatten(), found.next().flatten()) {
                (None, _) => return Ok(()),
                (Some(now), Some(_)) if now.version == entry.version => {
                    adopted.leave(key.to_string(), format!("{} holds something already", keys[1]));
                    return Ok(());
                }
                (Some(now), _) => entry = now,
            }
        }
        adopted.leave(key.to_string(), "others kept changing it; run it again");
        Ok(())
    }

    /// One entry of an export that has these pages.
    async fn adopt_line(
        &self,
        key: Key,
        value: Json,
        pages: &HashSet<PageId>,
        apply: bool,
        adopted: &mut Adopted,
    ) -> Result<()> {
        let taken = self.taken(&key, &value, None, pages).await?;
        // Where it goes: the original's place would be emptied if it were in the store.
        let target = match &taken {
            Taken::Aside(_, None) => aside(&key),
            _ => key.clone(),
        };
        let found = self.store().get(&target).await?;
        if let Some(found) = found {
            match (&taken, target == key) {
                (Taken::Already | Taken::Unknown | Taken::Not(_), _) => {}
                // It was taken over before, and may have changed since.
                (_, true) if self.is_ours(&key, &found).await? => {
                    adopted.already += 1;
                    return Ok(());
                }
                (_, false) if found.value == value => {
                    adopted.already += 1;
                    return Ok(());
                }
                _ => {
                    adopted.leave(
                        key.to_string(),
                        format!("the store has something else at {target}"),
                    );
                    return Ok(());
                }
            }
        }
        let settled = settle(&key, &value, taken, adopted, |commit| commit);
        let Some((what, commit)) = settled else { return Ok(()) };
        if !apply || self.store().commit(commit.check(target, Expect::Absent)).await?.is_applied() {
            adopted.count(what);
            return Ok(());
        }
        adopted.leave(key.to_string(), "others wrote it meanwhile; run it again");
        Ok(())
    }

    async fn is_ours(&self, key: &Key, entry: &Entry) -> Result<bool> {
        let taken = self.taken(key, &entry.value, Some(entry), &HashSet::new()).await?;
        Ok(matches!(taken, Taken::Already))
    }

    /// Whether the store has policies or issues of a page.
    async fn has_content(&self, page: &PageId) -> Result<bool> {
        for range in [places::policies(page), places::issues(page)] {
            let mut scan = Scan::new(range).limit(1).keys_only();
            loop {
                let found = self.store().scan(&scan).await?;
                match found.next {
                    _ if !found.rows.is_empty() => return Ok(true),
                    Some(next) => scan = scan.after(Some(next)),
                    None => break,
                }
            }
        }
        Ok(false)
    }

    /// What an entry is taken over as: one of the store, or one of an export with content of `pages`.
    async fn taken(
        &self,
        key: &Key,
        value: &Json,
        entry: Option<&Entry>,
        pages: &HashSet<PageId>,
    ) -> Result<Taken> {
        let is_stored = entry.is_some();
        let kind = match Kind::of(key) {
            None => return Ok(Taken::Unknown),
            Some(Err(reason)) => return Ok(Taken::Not(reason)),
            Some(Ok(kind)) => kind,
        };
        Ok(match kind {
            Kind::Policy { source, language } => {
                document::taken(&source, language.as_deref(), value, entry)
            }
            Kind::Issue { page, id } => {
                let is_known = issue::sources(value);
                let mut documents = issue::Documents::default();
                for source in is_known {
                    let key = places::policy(&page, &source, None)?;
                    if let Some(entry) = self.store().get(&key).await? {
                        documents.add(source, &entry.value);
                    }
                }
                issue::taken(&page, &id, value, is_stored, &documents)
            }
            Kind::Job { .. } if entry.is_none() => Taken::Aside(What::Job, None),
            Kind::Job { id } => match self.jobs().get(&id).await {
                Ok(Some(_)) => Taken::Already,
                Ok(None) => Taken::Unknown,
                // What the queue cannot read is no job of ours.
                Err(QueueError::Damaged { .. }) => Taken::Aside(What::Job, None),
                Err(error) => return Err(error.into()),
            },
            Kind::Page { page } => match Catalog::of(page.as_str(), value) {
                Catalog::Ours if is_stored => Taken::Already,
                // Its holders are processes of another store.
                Catalog::Ours => Taken::Aside(What::Locks, None),
                Catalog::Certain => transient::locks(value, self.now()),
                Catalog::Likely if pages.contains(&page) || self.has_content(&page).await? => {
                    transient::locks(value, self.now())
                }
                Catalog::Likely | Catalog::Doubtful => Taken::Not(NOT_A_CATALOG.to_owned()),
                Catalog::None => Taken::Unknown,
            },
            Kind::Purged => {
                let interval = self.options().purge_interval;
                transient::purged(value, is_stored, self.now(), interval)
            }
        })
    }
}

/// The page of a policy or an issue.
fn page_with_content(key: &Key) -> Option<PageId> {
    let kind = Kind::of(key)?.ok()?;
    let is_content = matches!(kind, Kind::Policy { .. } | Kind::Issue { .. });
    let page = key.segments().next().filter(|_| is_content)?;
    PageId::new(&page).ok()
}

/// What is committed for an entry; otherwise what became of it is noted.
fn settle(
    key: &Key,
    value: &Json,
    taken: Taken,
    adopted: &mut Adopted,
    checked: impl FnOnce(Commit) -> Commit,
) -> Option<(What, Commit)> {
    let commit = checked(Commit::new());
    match taken {
        Taken::As(what, put) => Some((what, commit.put(key.clone(), put))),
        Taken::Aside(what, instead) => {
            let is_there = !commit.checks.is_empty();
            let aside = aside(key);
            let mut commit = commit;
            if is_there {
                commit = commit.check(aside.clone(), Expect::Absent);
            }
            commit = commit.put(aside, Put::new(value.clone()));
            commit = match instead {
                Some(put) => commit.put(key.clone(), put),
                None if is_there => commit.delete(key.clone()),
                None => commit,
            };
            Some((what, commit))
        }
        Taken::Already => {
            adopted.already += 1;
            None
        }
        Taken::Unknown => {
            adopted.unknown += 1;
            None
        }
        Taken::Not(reason) => {
            adopted.leave(key.to_string(), reason);
            None
        }
    }
}

/// Whether a key is Keyward's own, and none that the app has too.
fn is_own(key: &Key) -> bool {
    let mut segments = key.segments();
    let first = segments.next().unwrap_or_default();
    let second = segments.next().unwrap_or_default();
    match &*first {
        "system" => second != "purged",
        "index" | "lock" | "queue" | "dead-letter" | UPLOADS => true,
        _ => second == "analysis" && segments.next().is_none(),
    }
}

/// Where the original of an entry goes.
fn aside(key: &Key) -> Key {
    Prefix::from_segments(ASIDE).join(key)
}

fn read_line(text: &[u8]) -> Result<(Key, Json), String> {
    if text.len() as u64 == LINE_BYTES_MAX && text.last() != Some(&b'\n') {
        return Err(format!("it must be at most {LINE_BYTES_MAX} bytes long"));
    }
    let line: Line = serde_json::from_slice(text)
        .map_err(|error| format!("it must be {{\"key\":\"…\",\"value\":…}}: {error}"))?;
    let key =
        Key::parse(&line.key).map_err(|error| format!("{:?} is no key: {error}", line.key))?;
    let value = Json::parse(line.value.get().to_owned())
        .map_err(|error| format!("the value of {key}: {error}"))?;
    Ok((key, value))
}

fn unread(line: u64, error: &std::io::Error) -> Error {
    Error::Invalid(format!("the export cannot be read at line {line}: {error}"))
}

/// A time as the app may have written it: RFC 3339, the same without a zone (then UTC), or milliseconds since 1970.
fn time(raw: &RawValue) -> Option<Timestamp> {
    if let Ok(millis) = serde_json::from_str::<i64>(raw.get()) {
        return Timestamp::from_millisecond(millis).ok();
    }
    let text: String = serde_json::from_str(raw.get()).ok()?;
    let text = text.trim();
    if let Ok(at) = text.parse() {
        return Some(at);
    }
    let civil: jiff::civil::DateTime = text.parse().ok()?;
    civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|at| at.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_form_that_the_app_may_have_written() {
        let read = |text: &str| time(&RawValue::from_string(text.to_owned()).unwrap());
        let at: Timestamp = "2025-10-20T16:00:00Z".parse().unwrap();
        for text in [
            "\"2025-10-20T16:00:00Z\"",
            "\"2025-10-20T16:00:00.000\"",
            "\"2025-10-20T18:00:00+02:00\"",
            "1760976000000",
        ] {
            assert_eq!(read(text), Some(at), "{text}");
        }
        assert!(read("\"2025-10-20\"").is_some());
        for text in ["\"yesterday\"", "null", "{}", "1.5"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
