//! Writes that are refused once their lock is somebody else's.

use keyward_engine::{
    Commit, Entry, ErrorKind, Expect, Expiry, ExpirySupport, Json, Outcome, Put, Version,
};
use keyward_key::Key;
use serde::{Deserialize, Serialize};

use crate::guard::Grant;
use crate::{Error, Guard, Mode, Result};

/// What an update makes of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Set it.
    Put(Put),
    /// Remove it.
    Delete,
    /// Leave it as it is.
    Keep,
}

/// How an update ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Updated {
    /// The entry is set, with this version.
    Put(Version),
    /// The entry is gone.
    Deleted,
    /// Nothing was to be done.
    Kept,
}

/// How often others may change the entry in between.
const ATTEMPTS_MAX: usize = 32;
/// How often the store may fail before an update whose answers are lost is given up.
const FAILURES_MAX: usize = 6;
/// How long a deleted entry is remembered, where commits have one key: longer than any process can
/// be late.
const TOMBSTONE_TTL: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 60 * 60);
/// The first name in the metadata of entries that were written under a guard there.
const MARK_START: &str = r#"{"keyward-fence":"#;

impl Guard {
    /// Commits with this lock's fence as one more check: if the lock is somebody else's by then,
    /// nothing is written, and this fails with [`Error::Lost`]. The failed checks of a conflict are
    /// those of the commit as it was given. Where commits have one key only, this is refused; use
    /// [`Guard::update`].
    ///
    /// If the answer is lost ([`OutcomeUnknown`](keyward_engine::ErrorKind::OutcomeUnknown)), what
    /// was sent may land until the next commit through this guard, and never after it.
    pub async fn commit(&self, commit: Commit) -> Result<Outcome> {
        // Refused where there are no fences.
        let check = self.fence()?;
        let grant = &self.held().grant;
        let Some(fence) = &grant.fence else { return Err(self.refused().await) };
        let given = commit.checks.iter().position(|given| *given == check);
        let at = given.unwrap_or(commit.checks.len());
        loop {
            self.check_held()?;
            if fence.is_doubted() {
                self.outrun().await?;
            }
            let version = fence.version();
            let mut fenced = commit.clone();
            let check = grant.fence_check(version.clone());
            match given {
                Some(at) => fenced.checks[at] = check,
                None => fenced.checks.push(check),
            }
            let sent = fence.send(version.clone());
            let outcome = self.root().shared.store.commit(fenced).await;
            if !matches!(&outcome, Err(error) if error.kind() == ErrorKind::OutcomeUnknown) {
                sent.answered();
            }
            match outcome? {
                Outcome::Conflicted { failed } if failed.contains(&at) => {
                    // Another commit of this guard may have moved the fence meanwhile.
                    if fence.version() == version {
                        return Err(self.refused().await);
                    }
                }
                outcome => return Ok(outcome),
            }
        }
    }

    /// What a key holds, without what [`Guard::update`] keeps beside it where commits have one key.
    pub async fn get(&self, key: &Key) -> Result<Option<Entry>> {
        let entry = self.root().shared.store.get(key).await?;
        Ok(if self.has_fence() { entry } else { entry.and_then(|entry| parted(entry).0) })
    }

    /// Reads an entry, changes it, and writes it, if the lock is still held: on every engine that
    /// has locks. `change` may be called again if others wrote in between; its error ends the
    /// update, and nothing is written.
    ///
    /// Where commits have one key, the lock's token is put into the entry's metadata *before* it is
    /// read, and a higher one there means that the lock is lost, unless it is of a guard with the same
    /// owner and the catalog says that this one holds too. A deleted entry leaves a mark there
    /// for seven days, a `null` with metadata, which [`Guard::get`] shows as absent. Only exclusive
    /// guards can update there, and a key must always be written under the same root.
    pub async fn update(
        &self,
        key: &Key,
        mut change: impl FnMut(Option<&Entry>) -> Result<Change>,
    ) -> Result<Updated> {
        self.check_held()?;
        if self.has_fence() {
            return self.update_by_check(key, &mut change).await;
        }
        if self.mode() != Mode::Exclusive {
            let message =
                "a shared lock cannot update where commits have one key; take it exclusively";
            return Err(Error::BadRequest(message.to_owned()));
        }
        self.update_by_mark(key, &mut change).await
    }

    async fn update_by_check(
        &self,
        key: &Key,
        change: &mut impl FnMut(Option<&Entry>) -> Result<Change>,
    ) -> Result<Updated> {
        for _ in 0..ATTEMPTS_MAX {
            let entry = self.root().shared.store.get(key).await?;
            let expect =
                entry.as_ref().map_or(Expect::Absent, |old| Expect::Version(old.version.clone()));
            let commit = Commit::new().check(key.clone(), expect);
            let commit = match change(entry.as_ref())? {
                Change::Put(put) => commit.put(key.clone(), put),
                Change::Delete => commit.delete(key.clone()),
                Change::Keep => return Ok(Updated::Kept),
            };
            if let Outcome::Applied { versions, .. } = self.commit(commit).await? {
                return Ok(versions
                    .into_iter()
                    .next()
                    .flatten()
                    .map_or(Updated::Deleted, Updated::Put));
            }
        }
        Err(Error::Contended { key: key.clone(), attempts: ATTEMPTS_MAX })
    }

    async fn update_by_mark(
        &self,
        key: &Key,
        change: &mut impl FnMut(Option<&Entry>) -> Result<Change>,
    ) -> Result<Updated> {
        let store = &self.root().shared.store;
        let mut pending: Option<Pending> = None;
        for _ in 0..ATTEMPTS_MAX {
            let touched = match (self.touch(key, pending.as_ref()).await, pending.take()) {
                (Ok(Touch::Marked(touched)), _) => touched,
                (Ok(Touch::Found(version)), Some(pending)) => return Ok(pending.done(version)),
                // Whether the earlier write worked can no longer be known, and its error says so.
                (_, Some(pending)) => return Err(pending.error),
                (Err(error), None) => return Err(error),
                (Ok(Touch::Found(_) | Touch::Lost), None) => continue,
            };
            self.check_held()?;
            let (put, deletes) = match change(touched.entry.as_ref())? {
                Change::Put(put) => (put, false),
                Change::Delete if touched.entry.is_none() => return Ok(Updated::Deleted),
                Change::Delete => (self.tombstone(), true),
                Change::Keep => return Ok(Updated::Kept),
            };
            let write = self.root().shared.nonce()?;
            let touch = touched.mark.write.clone();
            let mark = Mark { write: write.clone(), deleted: deletes, ..touched.mark };
            let put = self.marked(key, put, &mark)?;
            let expect = Expect::Version(touched.version);
            let commit = Commit::new().check(key.clone(), expect).put(key.clone(), put);
            match store.commit(commit).await.map_err(Error::from) {
                Ok(outcome) => {
                    if let Some(version) = outcome.versions().and_then(|new| new.first()?.clone()) {
                        return Ok(if deletes { Updated::Deleted } else { Updated::Put(version) });
                    }
                }
                Err(error) if error.is_passing() => {
                    pending = Some(Pending { touch, write, deletes, error });
                }
                Err(error) => return Err(error),
            }
        }
        let contended = Error::Contended { key: key.clone(), attempts: ATTEMPTS_MAX };
        Err(pending.map_or(contended, |pending| pending.error))
    }

    /// Marks a key with this lock's token, and gives what it holds then; unless an earlier write,
    /// whose answer was lost, turns out to have worked.
    async fn touch(&self, key: &Key, pending: Option<&Pending>) -> Result<Touch> {
        let Grant { root, token, owner, .. } = &self.held().grant;
        let store = &root.shared.store;
        let mut failures = 0;
        // The marks under which the earlier write cannot have worked yet.
        let mut before: Vec<String> = pending.iter().map(|pending| pending.touch.clone()).collect();
        for _ in 0..ATTEMPTS_MAX {
            let stored = match store.get(key).await.map_err(Error::from) {
                Err(error) if error.is_passing() && failures < FAILURES_MAX => {
                    failures += 1;
                    continue;
                }
                stored => stored?,
            };
            let version = stored.as_ref().map(|entry| entry.version.clone());
            let (entry, known) = stored.map_or((None, None), parted);
            if let (Some(pending), Some(version)) = (pending, &version) {
                match known.as_ref().map(|mark| &mark.write) {
                    Some(write) if *write == pending.write => {
                        return Ok(Touch::Found(version.clone()));
                    }
                    Some(write) if before.contains(write) => {}
                    _ => return Ok(Touch::Lost),
                }
            }
            if let Some(known) = &known {
                match self.check_mark(key, known).await {
                    Err(error) if error.is_passing() && failures < FAILURES_MAX => {
                        failures += 1;
                        continue;
                    }
                    checked => checked?,
                }
            }
            let mark = Mark {
                root: root.key().to_string(),
                // A guard taken under this one may have been here.
                token: known.as_ref().map_or(*token, |known| known.token.max(*token)),
                owner: owner.clone(),
                write: root.shared.nonce()?,
                deleted: entry.is_none(),
            };
            before.push(mark.write.clone());
            let put = match &entry {
                Some(entry) => Put {
                    value: entry.value.clone(),
                    metadata: entry.metadata.clone(),
                    expiry: entry.expires.map(Expiry::At),
                },
                None => self.tombstone(),
            };
            let expect = version.map_or(Expect::Absent, Expect::Version);
            let put = self.marked(key, put, &mark)?;
            let commit = Commit::new().check(key.clone(), expect).put(key.clone(), put);
            match store.commit(commit).await.map_err(Error::from) {
                Ok(outcome) => {
                    if let Some(version) = outcome.versions().and_then(|new| new.first()?.clone()) {
                        return Ok(Touch::Marked(Touched { entry, version, mark }));
                    }
                }
                // Touching twice does no harm.
                Err(error) if error.is_passing() && failures < FAILURES_MAX => failures += 1,
                Err(error) => return Err(error),
            }
        }
        Err(Error::Contended { key: key.clone(), attempts: ATTEMPTS_MAX })
    }

    /// What a deleted entry leaves behind.
    fn tombstone(&self) -> Put {
        let put = Put::new(Json::from_stored("null"));
        match self.root().shared.store.capabilities().expiry {
            ExpirySupport::Supported { .. } => put.expiring(Expiry::After(TOMBSTONE_TTL)),
            ExpirySupport::Unsupported => put,
        }
    }

    /// Refuses what a later holder, or the holder of another root's lock, has touched.
    async fn check_mark(&self, key: &Key, mark: &Mark) -> Result<()> {
        let Grant { root, id, token, owner, .. } = &self.held().grant;
        if mark.root != root.key().to_string() {
            return Err(Error::ForeignFence {
                key: key.clone(),
                root: root.key().clone(),
                other: mark.root.clone(),
            });
        }
        if mark.token <= *token {
            return Ok(());
        }
        // A later guard of the same owner was here: one beside this one, or the one that came after
        // it was lost. Only the catalog tells. Whoever comes after this look changes the entry
        // before it reads it, and what is written here fails by the entry's version.
        if mark.owner == *owner {
            let look = root.look().await?;
            if look.catalog.holder(id).is_some_and(|mine| mine.token == *token) {
                return Ok(());
            }
        }
        Err(self.refused().await)
    }

    fn marked(&self, key: &Key, put: Put, mark: &Mark) -> Result<Put> {
        let damaged = |reason: String| {
            let reason = format!("the metadata of {key}: {reason}");
            Error::Damaged { root: self.root().key().clone(), reason }
        };
        let mark = serde_json::to_string(mark).map_err(|error| damaged(error.to_string()))?;
        let rest = put.metadata.as_ref().map_or("{}", Json::as_str);
        let rest = rest.strip_prefix('{').unwrap_or("}");
        let comma = if rest == "}" { "" } else { "," };
        let metadata = Json::parse(format!("{MARK_START}{mark}{comma}{rest}"))
            .map_err(|error| damaged(error.to_string()))?;
        Ok(Put { metadata: Some(metadata), ..put })
    }

    fn has_fence(&self) -> bool {
        self.held().grant.fence.is_some()
    }

    fn check_held(&self) -> Result<()> {
        match self.loss() {
            Some(loss) => Err(self.held().is_lost(loss)),
            None => Ok(()),
        }
    }

    /// The store refused a write: the lock is somebody else's.
    pub(crate) async fn refused(&self) -> Error {
        self.root().shared.metrics.fence_refusals.inc();
        let loss = self.held().grant.reason().await;
        self.held().lose(loss.clone());
        self.held().is_lost(self.loss().unwrap_or(loss))
    }
}

/// Which lock an entry was last touched under, where commits have one key.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Mark {
    root: String,
    token: u64,
    owner: String,
    /// Which write this is, to find it after a lost answer.
    write: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
}

/// An entry that carries this lock's token.
struct Touched {
    entry: Option<Entry>,
    version: Version,
    mark: Mark,
}

/// How touching an entry ended.
enum Touch {
    Marked(Touched),
    /// The earlier write is there, with this version.
    Found(Version),
    /// Somebody wrote since the earlier write.
    Lost,
}

/// A write whose answer was lost.
struct Pending {
    /// The mark it was to replace.
    touch: String,
    write: String,
    deletes: bool,
    error: Error,
}

impl Pending {
    fn done(self, version: Version) -> Updated {
        if self.deletes { Updated::Deleted } else { Updated::Put(version) }
    }
}

/// An entry without its mark, absent if it is deleted, and the mark.
fn parted(mut entry: Entry) -> (Option<Entry>, Option<Mark>) {
    let Some((mark, rest)) = entry.metadata.as_ref().and_then(|metadata| split(metadata.as_str()))
    else {
        return (Some(entry), None);
    };
    entry.metadata = rest.map(Json::from_stored);
    ((!mark.deleted).then_some(entry), Some(mark))
}

/// The mark at the beginning of some metadata, and what comes after it.
fn split(metadata: &str) -> Option<(Mark, Option<String>)> {
    let text = metadata.strip_prefix(MARK_START)?;
    let mut marks = serde_json::Deserializer::from_str(text).into_iter::<Mark>();
    let mark = marks.next()?.ok()?;
    let rest = text.get(marks.byte_offset()..)?;
    let rest = rest.strip_prefix(',').map(|rest| format!("{{{rest}"));
    Some((mark, rest))
}

/// What an entry shows to those who hold no lock: without what [`Guard::update`] keeps beside it where
/// commits have one key, and nothing if it is only the mark of a deleted one.
pub fn present(entry: Option<Entry>) -> Option<Entry> {
    entry.and_then(|entry| parted(entry).0)
}
