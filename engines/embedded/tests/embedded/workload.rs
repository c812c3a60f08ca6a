//! What writers do to a store, so that it can be told afterwards whether all of it is there.
//!
//! Each writer makes a fixed sequence of commits, one after the other, to keys of its own and to one
//! shared number. What its keys must hold follows from how many of its commits are in the store.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use futures_util::StreamExt;
use keyward_engine::{
    ChangeKind, Commit, Entry, Event, Expiry, Json, Put, Revision, Scan, Store, Write,
};
use keyward_key::{Key, KeyRange};

use crate::child::key;

/// Something that must hold, or the reason why it does not.
pub type Checked<T> = Result<T, String>;

const KINDS: u32 = 6;
/// Values from a few bytes to several pages.
const TEXT_BYTES: [usize; 5] = [10, 200, 1_500, 5_000, 20_000];
const SLOTS: u32 = 4;

/// The `n`th commit of a writer.
pub fn commit(writer: u32, n: u32) -> Commit {
    let own = |name: &str| key(&format!("own:{writer}:{name}"));
    let slot = |number: u32| own(&format!("slot:{}", number % SLOTS));
    let number = || Put::new(Json::from_integer(n.into()));
    let round = n / KINDS;
    match n % KINDS {
        0 => Commit::new().put(slot(round), Put::new(text(writer, n))),
        // Two keys that must always agree.
        1 => {
            let about = Json::parse(format!(r#"{{"n":{n}}}"#)).unwrap();
            let left = number().with_metadata(about);
            Commit::new().put(own("left"), left).put(own("right"), number())
        }
        2 => Commit::new().add(own("count"), 1).add(key("total"), 1),
        // In the first rounds there is nothing to delete: a commit that changes nothing.
        3 => Commit::new().delete(slot(round + 2)),
        // One entry that is over at once, to be reclaimed by some later commit, and one that is not.
        4 => {
            let past = Expiry::At("2001-01-01T00:00:00Z".parse().unwrap());
            let later = Expiry::After(Duration::from_secs(36_000));
            Commit::new()
                .put(own("gone"), number().expiring(past))
                .put(own("lease"), number().expiring(later))
        }
        // Of two keys there is always exactly one.
        _ => {
            let (old, new) =
                if round.is_multiple_of(2) { ("even", "odd") } else { ("odd", "even") };
            Commit::new().delete(own(old)).put(own(new), Put::new(text(writer, n)))
        }
    }
}

fn text(writer: u32, n: u32) -> Json {
    let bytes = TEXT_BYTES[((n / KINDS + n % KINDS + writer) as usize) % TEXT_BYTES.len()];
    Json::parse(format!("\"{writer}-{n}-{}\"", "x".repeat(bytes))).unwrap()
}

/// A commit that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    pub writer: u32,
    pub n: u32,
    pub revision: u64,
}

impl fmt::Display for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ack {} {} {}", self.writer, self.n, self.revision)
    }
}

impl Ack {
    pub fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.strip_prefix("ack ")?.split(' ').map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        Some(Self { writer: next()? as u32, n: next()? as u32, revision: next()? })
    }
}

/// Makes some commits of a writer, one after the other, and tells of each once it is acknowledged.
pub async fn write(store: Store, writer: u32, commits: Range<u32>, tell: impl Fn(Ack)) {
    for n in commits {
        let outcome = store.commit(commit(writer, n)).await.unwrap();
        let keyward_engine::Outcome::Applied { revision, .. } = outcome else {
            panic!("{outcome:?}")
        };
        tell(Ack { writer, n, revision: revision.unwrap().0 });
    }
}

/// What keys must hold.
pub type State = BTreeMap<Key, Held>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub value: Json,
    pub metadata: Option<Json>,
    /// The revision of the commit that wrote it, where it is known.
    pub version: Option<u64>,
}

/// What keys hold after one more commit.
pub fn apply(state: &mut State, commit: &Commit, revision: Option<u64>) {
    for write in &commit.writes {
        let old = state.remove(write.key());
        let (value, metadata) = match write {
            Write::Delete(_) => continue,
            Write::Put(_, Put { expiry: Some(Expiry::At(_)), .. }) => continue,
            Write::Put(_, put) => (put.value.clone(), put.metadata.clone()),
            Write::Add(_, amount) => {
                let sum = Json::sum(old.as_ref().map(|old| &old.value), *amount).unwrap();
                (Json::from_integer(sum), None)
            }
        };
        state.insert(write.key().clone(), Held { value, metadata, version: revision });
    }
}

/// What a store holds.
pub struct Contents {
    pub entries: BTreeMap<Key, Entry>,
    pub revision: u64,
}

impl Contents {
    /// Reads everything, and checks that the log is without gaps and agrees with the entries.
    pub async fn read(store: &Store) -> Checked<Self> {
        let stats = store.stats().await.map_err(said)?;
        let (latest, earliest) = (stats.revision.unwrap().0, stats.earliest_revision.unwrap().0);
        let mut entries = BTreeMap::new();
        let mut scan = Scan::new(KeyRange::all()).limit(10_000);
        loop {
            let page = store.scan(&scan).await.map_err(said)?;
            entries.extend(page.rows.into_iter().map(|row| (row.key, row.entry.unwrap())));
            match page.next {
                Some(next) => scan = scan.after(Some(next)),
                None => break,
            }
        }
        let last = read_log(store, earliest, latest).await?;
        for (key, entry) in &entries {
            let version = entry.version.as_number().unwrap();
            if version > latest {
                return Err(format!("{key} has version {version}, the store revision {latest}"));
            }
            if version > earliest && last.get(key) != Some(&(version, ChangeKind::Put)) {
                let logged = last.get(key);
                return Err(format!("{key} has version {version}, but the log says {logged:?}"));
            }
        }
        for (key, (revision, kind)) in last {
            let over = key.to_string().ends_with(":gone");
            if kind == ChangeKind::Put && !over && !entries.contains_key(&key) {
                return Err(format!("revision {revision} put {key}, which is not there"));
            }
        }
        Ok(Self { entries, revision: latest })
    }

    /// Compares with what should be there. Versions count where they are known.
    pub fn compare(&self, expected: &State) -> Checked<()> {
        let difference = expected.keys().chain(self.entries.keys()).find_map(|key| {
            let (found, expected) = (self.entries.get(key), expected.get(key));
            let same = match (found, expected) {
                (Some(found), Some(expected)) => is_as(found, expected),
                _ => false,
            };
            (!same).then(|| (key.clone(), short(found), short(expected)))
        });
        match difference {
            None => Ok(()),
            Some((key, found, expected)) => Err(format!(
                "at revision {}: {key} holds {found}, and should hold {expected}",
                self.revision
            )),
        }
    }
}

pub fn is_as(found: &Entry, expected: &Held) -> bool {
    found.value == expected.value
        && found.metadata == expected.metadata
        && expected.version.is_none_or(|version| found.version.as_number() == Some(version))
}

fn short(held: Option<&impl fmt::Debug>) -> String {
    held.map_or("nothing".to_owned(), |held| format!("{held:?}").chars().take(300).collect())
}

/// The last change of each key that the log knows of.
async fn read_log(
    store: &Store,
    earliest: u64,
    latest: u64,
) -> Checked<BTreeMap<Key, (u64, ChangeKind)>> {
    let mut last = BTreeMap::new();
    let mut at = earliest;
    let mut events = store.watch(KeyRange::all(), Some(Revision(earliest)));
    while at < latest || earliest == latest {
        let event = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
        let event = event.map_err(|_| format!("the log ends at {at}, not at {latest}"))?;
        let (revision, changes) = match event.ok_or("the watch ended")?.map_err(said)? {
            Event::Reached(revision) if earliest == latest && revision.0 == latest => break,
            Event::Reached(revision) => (revision.0, Vec::new()),
            Event::Changed { revision, changes } => (revision.0, changes),
            Event::TooOld { earliest } => return Err(format!("the log begins at {earliest}")),
        };
        // A restored store's first revision changes nothing, so nothing is told of it.
        let skipped = u64::from(at == earliest && at > u64::from(u32::MAX));
        if revision > at + 1 + skipped {
            return Err(format!("the log jumps from {at} to {revision}"));
        }
        at = revision;
        last.extend(changes.into_iter().map(|change| (change.key, (revision, change.kind))));
    }
    Ok(last)
}

fn said(error: keyward_engine::Error) -> String {
    error.to_string()
}
