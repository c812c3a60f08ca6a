//! Pages of a folder that change.
//!
//! Nothing runs unless somebody reads the stream. What happens meanwhile waits with the system, which
//! keeps a bounded number of events, and says so if there were more: then everything is compared.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use futures_util::stream;
use keyward_engine::BoxStream;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::super::Changed;
use super::files::{open_root, unread};
use super::inotify::Inotify;
use super::names::pages;
use super::snapshot::{Snapshot, compare, look, take};
use super::{Inner, blocking};
use crate::{PageId, Result};

/// What the system tells of a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hints {
    /// Directories in which something happened, or to which: names on disk.
    pub disk: BTreeSet<String>,
    /// Something was left out.
    pub everything: bool,
    /// The folder itself was moved or removed.
    pub root_gone: bool,
}

impl Hints {
    /// More than so many directories are everything.
    const NAMES_MAX: usize = 10_000;

    pub fn add(&mut self, disk: &str) {
        if self.disk.len() < Self::NAMES_MAX {
            self.disk.insert(disk.to_owned());
        } else {
            self.everything = true;
        }
    }

    fn extend(&mut self, more: Self) {
        more.disk.iter().for_each(|disk| self.add(disk));
        self.everything |= more.everything;
        self.root_gone |= more.root_gone;
    }
}

struct Watch {
    inner: Arc<Inner>,
    snapshot: Snapshot,
    /// What tells of changes, if something does.
    system: Option<Inotify>,
    /// Whether the system is to be asked at all.
    asks: bool,
    /// When everything is compared again.
    compare_at: Instant,
    /// What was found, and not told yet.
    found: VecDeque<PageId>,
}

pub(super) async fn changes(inner: Arc<Inner>) -> Result<BoxStream<'static, Changed>> {
    let mut watch = Watch {
        asks: inner.options.watch,
        inner,
        snapshot: Snapshot::new(),
        system: None,
        compare_at: Instant::now(),
        found: VecDeque::new(),
    };
    // From here on nothing is missed.
    watch.compare_all().await?;
    watch.found.clear();
    Ok(Box::pin(stream::unfold(watch, async |mut watch| {
        let page = watch.next().await;
        Some((Changed { page }, watch))
    })))
}

impl Watch {
    async fn next(&mut self) -> PageId {
        loop {
            if let Some(page) = self.found.pop_front() {
                return page;
            }
            let hints = self.wait().await;
            let all = hints.everything || hints.root_gone || Instant::now() >= self.compare_at;
            let looked = if all { self.compare_all().await } else { self.look_at(hints).await };
            if let Err(error) = looked {
                // The pages are as they were, as far as anybody knows.
                tracing::warn!(%error, "a folder of pages cannot be looked at");
                self.system = None;
                self.compare_at = Instant::now() + self.inner.options.poll;
            }
        }
    }

    /// Waits until something has happened and it is quiet again, or everything is to be compared.
    async fn wait(&mut self) -> Hints {
        let mut hints = Hints::default();
        let options = self.inner.options;
        let mut until = self.compare_at;
        let mut latest = None;
        loop {
            let Some(system) = &mut self.system else {
                sleep_until(until).await;
                return hints;
            };
            match timeout_at(until, system.hints()).await {
                Err(_) => return hints,
                Ok(Ok(more)) => {
                    hints.extend(more);
                    let now = Instant::now();
                    let latest = *latest.get_or_insert(now + options.delay_max);
                    until = latest.min(now + options.quiet);
                    if hints.root_gone {
                        self.system = None;
                    }
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "a folder of pages is no longer watched, but compared");
                    self.system = None;
                    self.asks = false;
                    hints.everything = true;
                    return hints;
                }
            }
        }
    }

    /// Compares all pages with what they looked like.
    async fn compare_all(&mut self) -> Result<()> {
        if self.system.is_none() && self.asks {
            self.system = Inotify::open(&self.inner.root).inspect_err(not_watched).ok();
        }
        let (inner, mut system) = (self.inner.clone(), self.system.take());
        let (snapshot, system) = blocking(move || {
            // Watched before it is looked at, so that nothing happens in between.
            let mut added = Ok(());
            if let Some(system) = &mut system {
                let root = open_root(&inner.root)?;
                let pages = pages(&root, &inner.root, &inner.options.limits)?;
                added = pages.disk.values().try_for_each(|disk| system.add(&inner.root, disk));
            }
            let snapshot = take(&inner.root, &inner.options.limits)?;
            Ok((snapshot, added.map(|()| system)))
        })
        .await?;
        self.system = system.unwrap_or_else(|error| {
            // There are more pages than the system watches: it will be no different next time.
            not_watched(&error);
            self.asks = false;
            None
        });
        self.found.extend(compare(&self.snapshot, &snapshot));
        self.snapshot = snapshot;
        let options = &self.inner.options;
        let pause = if self.system.is_some() { options.rescan } else { options.poll };
        self.compare_at = Instant::now() + pause;
        Ok(())
    }

    /// Looks again at what the system told of.
    async fn look_at(&mut self, hints: Hints) -> Result<()> {
        let (inner, mut system) = (self.inner.clone(), self.system.take());
        let (looks, system) = blocking(move || {
            let root = open_root(&inner.root)?;
            let mut looks = Vec::new();
            for disk in hints.disk {
                let Ok(id) = PageId::new(&disk) else { continue };
                if let Some(system) = &mut system {
                    system.add(&inner.root, &disk).map_err(|error| unread(&inner.root, error))?;
                }
                looks.push((id, look(&root, &inner.root, disk)));
            }
            Ok((looks, system))
        })
        .await?;
        self.system = system;
        for (id, look) in looks {
            let is = look.is_some();
            let was = match look {
                Some(look) => self.snapshot.insert(id.clone(), look),
                None => self.snapshot.remove(&id),
            };
            if is || was.is_some() {
                self.found.push_back(id);
            }
        }
        Ok(())
    }
}

fn not_watched(error: &std::io::Error) {
    tracing::info!(%error, "a folder of pages is compared from time to time, not watched");
}
