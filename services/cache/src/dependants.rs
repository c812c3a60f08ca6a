//! What was made from a cached value goes with it.

use std::collections::BTreeSet;
use std::time::Duration;

use keyward_engine::{Commit, Expect, Expiry, Json, Outcome, Put, Scan, Version};
use keyward_key::{Key, KeyRange, Prefix};

use crate::label::Stored;
use crate::{Cache, Error, Result};

/// What was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Cached values, the one that was named included.
    pub values: u64,
}

/// How many keys are read or deleted together.
const TOGETHER: usize = 100;
/// How many dependants one key can have, over all generations.
const DEPENDANTS_MAX: usize = 100_000;

/// Below this stands, for each key that others depend on, who they are.
pub(crate) fn edges() -> Prefix {
    Prefix::from_segments(["system", "cache", "dependants"])
}

/// The entry which says that a key depends on another.
pub(crate) fn edge(parent: &Key, dependant: &Key, ttl: Option<Duration>) -> Result<(Key, Put)> {
    let key = edges().child(&name(parent)).child(&name(dependant)).to_key();
    let key = key.ok_or_else(|| Error::BadRequest("a key without segments".into()))?;
    let value = Json::from_value(&dependant.to_string())
        .map_err(|error| Error::BadRequest(error.to_string()))?;
    let mut put = Put::new(value);
    put.expiry = ttl.map(Expiry::After);
    Ok((key, put))
}

/// A key's text in a segment of another key: its beginning and a hash, where the whole is long.
pub(crate) fn name(key: &Key) -> String {
    const WHOLE_CHARS_MAX: usize = 200;
    let text = key.to_string();
    if text.chars().count() <= WHOLE_CHARS_MAX {
        return text;
    }
    let beginning: String = text.chars().take(WHOLE_CHARS_MAX).collect();
    format!("{beginning}~{:016x}{:016x}", spread(text.as_bytes(), 1), spread(text.as_bytes(), 2))
}

/// FNV-1a: the same for every version of every process, since they must meet at one key.
pub(crate) fn spread(bytes: &[u8], salt: u64) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325 ^ salt, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Everything that was made from a key, as it was found.
#[derive(Default)]
pub(crate) struct Family {
    /// Cached values; those made from others after these.
    values: Vec<(Key, Version)>,
    edges: Vec<Key>,
}

/// Finds what was made from a key, and from what was made from it: what is cached below it, and what was
/// said to depend on it. Where `held` names the computation whose value is meant, those made from another
/// value of the key are left out.
pub(crate) async fn of(cache: &Cache, key: &Key, held: Option<&str>) -> Result<Family> {
    let store = &cache.inner.store;
    let mut family = Family::default();
    let mut seen = BTreeSet::from([key.clone()]);
    let mut next = vec![(key.clone(), held.map(str::to_owned))];
    while let Some((parent, held)) = next.pop() {
        let below = Prefix::from_segments(parent.segments());
        let mut scan = Scan::new(KeyRange::under(&below)).limit(TOGETHER);
        loop {
            let page = store.scan(&scan).await?;
            for row in page.rows {
                let stored = keyward_locks::present(row.entry).and_then(Stored::of);
                if let (Some(stored), true) = (stored, seen.insert(row.key.clone())) {
                    family.values.push((row.key.clone(), stored.entry.version));
                    next.push((row.key, Some(stored.label.computation)));
                }
            }
            match page.next {
                Some(cursor) => scan = scan.after(Some(cursor)),
                None => break,
            }
        }
        for (edge, dependant) in dependants(cache, &parent).await? {
            let Some((key, stored)) = dependant else {
                family.edges.push(edge);
                continue;
            };
            let made_from_it =
                held.as_ref().is_none_or(|held| stored.label.is_made_from(&parent, held));
            if made_from_it {
                family.edges.push(edge);
                if seen.insert(key.clone()) {
                    family.values.push((key.clone(), stored.entry.version));
                    next.push((key, Some(stored.label.computation)));
                }
            }
        }
        if seen.len() > DEPENDANTS_MAX {
            return Err(Error::BadRequest(format!(
                "more than {DEPENDANTS_MAX} results were made from {key}"
            )));
        }
    }
    Ok(family)
}

/// Those that were said to depend on a key, each with the entry that says so.
async fn dependants(cache: &Cache, key: &Key) -> Result<Vec<(Key, Option<(Key, Stored)>)>> {
    let store = &cache.inner.store;
    let mut found = Vec::new();
    let mut scan = Scan::new(KeyRange::under(&edges().child(&name(key)))).limit(TOGETHER);
    loop {
        let page = store.scan(&scan).await?;
        for row in page.rows {
            let text = row
                .entry
                .and_then(|entry| serde_json::from_slice::<String>(entry.value.as_bytes()).ok());
            let dependant = match text.and_then(|text| Key::parse(&text).ok()) {
                Some(key) => {
                    let entry = keyward_locks::present(store.get(&key).await?);
                    entry.and_then(Stored::of).map(|stored| (key, stored))
                }
                None => None,
            };
            found.push((row.key, dependant));
        }
        match page.next {
            Some(cursor) => scan = scan.after(Some(cursor)),
            None => return Ok(found),
        }
    }
}

impl Family {
    /// Drops what is still as it was found: what was computed anew meanwhile stays. Values go before
    /// those they were made from, so that who stops halfway can be followed by another.
    pub async fn delete(mut self, cache: &Cache) -> Result<u64> {
        let store = &cache.inner.store;
        let together = (store.limits().commit_keys_max / 2).clamp(1, TOGETHER);
        let mut deleted = 0;
        self.values.reverse();
        for some in self.values.chunks(together) {
            let mut some = some.to_vec();
            while !some.is_empty() {
                let commit = some.iter().fold(Commit::new(), |commit, (key, version)| {
                    let expect = Expect::Version(version.clone());
                    commit.check(key.clone(), expect).delete(key.clone())
                });
                match store.commit(commit).await? {
                    Outcome::Applied { .. } => {
                        deleted += some.len() as u64;
                        break;
                    }
                    Outcome::Conflicted { failed } => {
                        let mut at = 0..;
                        some.retain(|_| at.next().is_some_and(|at| !failed.contains(&at)));
                    }
                }
            }
        }
        for some in self.edges.chunks(together) {
            let commit = some.iter().fold(Commit::new(), |commit, key| commit.delete(key.clone()));
            let _applied = store.commit(commit).await?;
        }
        cache.inner.metrics.dropped.inc_by(deleted);
        Ok(deleted)
    }
}

impl Cache {
    /// Drops a cached value, and with it everything that was made from it: what is cached below its
    /// key, and what was said to depend on it. A key that holds something else is refused.
    pub async fn invalidate(&self, key: &Key) -> Result<Dropped> {
        let entry = self.inner.store.get(key).await?;
        let stored = Stored::read(key, entry)?;
        self.drop_found(key, stored.as_ref()).await
    }

    /// Drops what was made from a key, and then what the key was found to hold, if it still does.
    pub(crate) async fn drop_found(&self, key: &Key, found: Option<&Stored>) -> Result<Dropped> {
        let Some(found) = found else {
            return Ok(Dropped { values: of(self, key, None).await?.delete(self).await? });
        };
        let held = found.label.computation.as_str();
        let mut family = of(self, key, Some(held)).await?;
        // First, so that it is dropped last.
        family.values.insert(0, (key.clone(), found.entry.version.clone()));
        let mut values = family.delete(self).await?;
        // From now on nothing that was made from it can be published.
        values += of(self, key, Some(held)).await?.delete(self).await?;
        Ok(Dropped { values })
    }
}
