use std::collections::HashSet;
use std::pin::pin;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use keyward_engine::{BoxFuture, Error, ErrorKind, Outcome, Result, Store};
use keyward_key::Key;

use crate::batch::{Batch, Batches};

/// Commits under way at one time, while the next pages are read.
const COMMITS_MAX: usize = 4;

/// Makes one store like another: every entry of the source, with its value, metadata and expiry, is
/// then in the target. Versions and history are each store's own.
///
/// What is equal already is not written, so that a copy can be started again after a crash, or
/// later to catch up, and goes on from there; a second one changes nothing. Keys that only the
/// target holds are counted and left alone, unless [`prune`](Self::prune) says otherwise.
///
/// Each page is read at its own moment: of a source that changes meanwhile, what is seen is copied,
/// and another run brings the rest. What others write into the target meanwhile may be overwritten.
///
/// While commits are under way, at most four, each of at most 1,000 entries and a megabyte (or a single
/// larger entry), the next one is read. With a page of each store, at most 1,000 entries or what an
/// engine ends a page at (16 MiB), that is all that is held in memory, however large the stores are.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use keyward_engine::{Json, Put, Store};
/// use keyward_key::Key;
/// use keyward_memory::Memory;
/// use keyward_migrate::{Copy, verify};
///
/// let (source, target) = (Store::new(Memory::new()), Store::new(Memory::new()));
/// source.put(Key::parse("user:7:name")?, Put::new(Json::parse(r#""Ada""#)?)).await?;
///
/// let copy = Copy::new(source.clone(), target.clone());
/// assert_eq!(copy.run(|_so_far| ()).await?.added, 1);
/// assert_eq!(copy.run(|_so_far| ()).await?.equal, 1);
/// assert!(verify(&source, &target, |_so_far| ()).await?.is_equal());
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Copy {
    source: Store,
    target: Store,
    prune: bool,
}

/// What a copy has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// Entries whose keys the target did not hold.
    pub added: u64,
    /// Entries for which the target held something else.
    pub replaced: u64,
    /// Entries that the target held already; they were not written.
    pub equal: u64,
    /// Keys that only the target holds, left alone; or that it did not hold alone any more when they
    /// were to be removed.
    pub extra: u64,
    /// Keys that only the target held, removed.
    pub pruned: u64,
}

impl Copied {
    /// Entries that were written.
    pub fn written(&self) -> u64 {
        self.added + self.replaced
    }

    /// Entries of the source that the target now holds.
    pub fn entries(&self) -> u64 {
        self.written() + self.equal
    }

    fn count(&mut self, more: &Self) {
        self.added += more.added;
        self.replaced += more.replaced;
        self.equal += more.equal;
        self.extra += more.extra;
        self.pruned += more.pruned;
    }
}

impl Copy {
    /// A copy from one store to another.
    pub fn new(source: Store, target: Store) -> Self {
        Self { source, target, prune: false }
    }

    /// The same; if `prune`, keys that only the target holds are removed. Before that the source is
    /// asked for them once more, and on engines that can compare, what has changed since it was seen
    /// is left alone: so if both are one store under two names, nothing is removed, also while
    /// others write to it.
    #[must_use]
    pub fn prune(mut self, prune: bool) -> Self {
        self.prune = prune;
        self
    }

    /// Copies, telling after each commit what has been done so far.
    ///
    /// An entry that the target cannot hold ends the copy with an error that names it, after what
    /// stands before it is written. After any error, and when the future is dropped, what was
    /// written stays, and another run goes on from there.
    pub async fn run(&self, progress: impl FnMut(&Copied)) -> Result<Copied> {
        let mut under_way =
            UnderWay { commits: FuturesUnordered::new(), copied: Copied::default(), progress };
        let walked = self.walk(&mut under_way).await;
        // Also after an error: what is told should be what was done.
        let mut finished = Ok(());
        while let Some(done) = under_way.commits.next().await {
            finished = finished.and(under_way.count(done));
        }
        walked.and(finished).map(|()| under_way.copied)
    }

    async fn walk<'s, P: FnMut(&Copied)>(&'s self, under_way: &mut UnderWay<'s, P>) -> Result<()> {
        let mut batches = Batches::new(&self.source, &self.target, self.prune)?;
        loop {
            let batch = {
                let mut reading = pin!(batches.next());
                loop {
                    if under_way.commits.is_empty() {
                        break reading.await?;
                    }
                    // Commits first: a new one begins only when it is polled, and reading may
                    // occupy this thread.
                    match select(under_way.commits.next(), reading.as_mut()).await {
                        Either::Left((Some(done), _)) => under_way.count(done)?,
                        Either::Left((None, _)) => {}
                        Either::Right((batch, _)) => break batch?,
                    }
                }
            };
            let Some(batch) = batch else { return Ok(()) };
            while under_way.commits.len() >= COMMITS_MAX {
                if let Some(done) = under_way.commits.next().await {
                    under_way.count(done)?;
                }
            }
            under_way.commits.push(Box::pin(self.store(batch)));
        }
    }

    async fn store(&self, mut batch: Batch) -> Result<Copied> {
        while !batch.commit.writes.is_empty() {
            // Only what is to be removed is checked, and may have to be left out.
            let commit = if batch.commit.checks.is_empty() {
                std::mem::take(&mut batch.commit)
            } else {
                batch.commit.clone()
            };
            let Outcome::Conflicted { failed } = self.target.commit(commit).await? else {
                break;
            };
            let changed = failed.iter().filter_map(|&at| batch.commit.checks.get(at));
            let changed: HashSet<Key> = changed.map(|check| check.key.clone()).collect();
            if changed.is_empty() {
                let message = "a commit was refused by none of its checks";
                return Err(Error::new(ErrorKind::Internal, message));
            }
            batch.leave(&changed);
        }
        Ok(batch.tally)
    }
}

/// Commits that have been sent, and the sum of those that are done.
struct UnderWay<'s, P> {
    commits: FuturesUnordered<BoxFuture<'s, Result<Copied>>>,
    copied: Copied,
    progress: P,
}

impl<P: FnMut(&Copied)> UnderWay<'_, P> {
    fn count(&mut self, done: Result<Copied>) -> Result<()> {
        self.copied.count(&done?);
        (self.progress)(&self.copied);
        Ok(())
    }
}
