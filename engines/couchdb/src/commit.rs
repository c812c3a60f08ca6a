use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{
    Check, Commit, Error, ErrorKind, Expect, Outcome, Put, Result, Version, Write,
};
use keyward_http::{Effect, Method, Request};
use keyward_key::Key;
use serde_json::json;

use crate::document::{Content, id_of};
use crate::engine::CouchDb;
use crate::read::Leaf;
use crate::rev::{Held, Rev};
use crate::write::{Written, write};

/// How often a write without a check is tried while others change the same document.
const TRIES_MAX: u32 = 64;
/// The longest pause before the second of them; then longer, up to sixteen times this.
const PAUSE: Duration = Duration::from_millis(2);
/// How many expired documents one commit deletes.
const RECLAIMED_MAX: usize = 100;

/// What a commit made of its one key.
enum Changed {
    To(Held),
    Deleted,
    /// There was nothing to do.
    Not,
    Conflicted,
}

impl CouchDb {
    pub(crate) async fn apply(&self, commit: Commit) -> Result<Outcome> {
        let Commit { checks, writes } = commit;
        let check = checks.into_iter().next();
        let changed = match writes.into_iter().next() {
            Some(Write::Put(key, put)) => self.put(&key, put, check).await?,
            Some(Write::Delete(key)) => self.delete(&key, check).await?,
            Some(Write::Add(..)) => {
                let message = "the couchdb engine cannot add to a number";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            None => {
                let Some(check) = check else { return Ok(applied(Vec::new())) };
                return Ok(match self.holds(&check).await? {
                    true => applied(Vec::new()),
                    false => conflicted(),
                });
            }
        };
        Ok(match changed {
            Changed::To(held) => applied(vec![Some(held.version())]),
            Changed::Deleted | Changed::Not => applied(vec![None]),
            Changed::Conflicted => conflicted(),
        })
    }

    async fn put(&self, key: &Key, put: Put, check: Option<Check>) -> Result<Changed> {
        let id = id_of(key);
        let content = Content::put(put, self.now());
        match check.map(|check| check.expect) {
            None => self.write_unchecked(&id, &content).await,
            Some(Expect::Version(version)) => self.replace(&id, &version, &content).await,
            Some(Expect::Absent) => self.create(&id, &content).await,
        }
    }

    async fn delete(&self, key: &Key, check: Option<Check>) -> Result<Changed> {
        let id = id_of(key);
        match check {
            None => self.write_unchecked(&id, &Content::Tombstone).await,
            Some(Check { expect: Expect::Version(version), .. }) => {
                self.replace(&id, &version, &Content::Tombstone).await
            }
            Some(check) => Ok(match self.holds(&check).await? {
                true => Changed::Not,
                false => Changed::Conflicted,
            }),
        }
    }

    async fn holds(&self, check: &Check) -> Result<bool> {
        let there = self.entry_of(&check.key).await?;
        Ok(match &check.expect {
            Expect::Absent => there.is_none(),
            Expect::Version(version) => there.is_some_and(|entry| entry.version == *version),
        })
    }

    fn now(&self) -> Timestamp {
        self.shared().clock.now()
    }

    /// Replaces the revision that a version names, unless its entry has expired or there never was such a one.
    async fn replace(&self, id: &str, version: &Version, content: &Content) -> Result<Changed> {
        let now = self.now();
        let Some(held) = Held::parse(version).filter(|held| !held.is_expired(now)) else {
            return Ok(Changed::Conflicted);
        };
        let left = held.expires.map(|end| Duration::try_from(end.duration_since(now)));
        let left = left.and_then(Result::ok).unwrap_or(Duration::MAX);
        self.write_within(left, id, Some(&held.rev), content).await
    }

    async fn write_once(&self, id: &str, base: Option<&Rev>, content: &Content) -> Result<Changed> {
        self.write_within(Duration::MAX, id, base, content).await
    }

    async fn write_within(
        &self,
        within: Duration,
        id: &str,
        base: Option<&Rev>,
        content: &Content,
    ) -> Result<Changed> {
        let client = &self.shared().client;
        let Written::Applied(rev) = write(client, id, base, content, within).await? else {
            return Ok(Changed::Conflicted);
        };
        let mut expiring = self.shared().expiring();
        match content {
            Content::Entry { .. } => {
                let held = content.held(rev);
                expiring.note(id.to_owned(), &held);
                Ok(Changed::To(held))
            }
            Content::Tombstone => {
                expiring.forget(id);
                Ok(Changed::Deleted)
            }
        }
    }

    /// Creates a document, or replaces one that has expired.
    async fn create(&self, id: &str, content: &Content) -> Result<Changed> {
        for tried in 0..TRIES_MAX {
            pause(tried).await;
            // CouchDB itself creates it after a revision that is deleted.
            let created = self.write_once(id, None, content).await?;
            if !matches!(created, Changed::Conflicted) {
                return Ok(created);
            }
            // Nothing there means that it was deleted just now.
            if let Some((held, _)) = self.stored(id).await? {
                if !held.is_expired(self.now()) {
                    return Ok(Changed::Conflicted);
                }
                let replaced = self.write_once(id, Some(&held.rev), content).await?;
                if !matches!(replaced, Changed::Conflicted) {
                    return Ok(replaced);
                }
            }
        }
        Err(contended(id))
    }

    /// Replaces whatever is there.
    async fn write_unchecked(&self, id: &str, content: &Content) -> Result<Changed> {
        for tried in 0..TRIES_MAX {
            pause(tried).await;
            let is_tombstone = matches!(content, Content::Tombstone);
            let base = match self.leaf(id).await? {
                Leaf::None | Leaf::Deleted(_) if is_tombstone => return Ok(Changed::Not),
                Leaf::None => None,
                Leaf::Deleted(rev) | Leaf::Live(rev) => Some(rev),
            };
            let written = self.write_once(id, base.as_ref(), content).await?;
            if !matches!(written, Changed::Conflicted) {
                return Ok(written);
            }
        }
        Err(contended(id))
    }

    /// Begins to delete some documents whose entries have expired, beside the commit and not in its way.
    pub(crate) fn reclaim_if_due(&self) {
        let due = self.shared().expiring().take(self.now(), RECLAIMED_MAX);
        if !due.is_empty() {
            let this = self.clone();
            tokio::spawn(async move { this.reclaim(due).await });
        }
    }

    async fn reclaim(&self, due: Vec<(String, Held)>) {
        // Whatever was written since has another revision, and stays.
        let tombstones: Vec<_> = due
            .iter()
            .map(|(id, held)| json!({"_id": id, "_rev": held.rev.as_str(), "_deleted": true}))
            .collect();
        let client = &self.shared().client;
        let url = client.url(&["_bulk_docs"], "");
        let request = Request::new(Method::POST, url, Effect::WritesOnce);
        let sent = client.send(request.json(json!({"docs": tombstones}).to_string())).await;
        // A server that is away is asked again later.
        if sent.is_err() {
            self.shared().expiring().give_back(due);
        }
    }
}

async fn pause(tried: u32) {
    if tried > 0 {
        tokio::time::sleep((PAUSE * tried.min(16)).mul_f64(fastrand::f64())).await;
    }
}

fn contended(id: &str) -> Error {
    let message = format!("others changed the CouchDB document {id:?} {TRIES_MAX} times in a row");
    Error::new(ErrorKind::Unavailable, message)
}

fn applied(versions: Vec<Option<Version>>) -> Outcome {
    Outcome::Applied { revision: None, versions }
}

fn conflicted() -> Outcome {
    Outcome::Conflicted { failed: vec![0] }
}
