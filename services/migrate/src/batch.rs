//! What a walk finds to write, in pieces that fit one commit of the target each.

use std::collections::HashSet;

use keyward_engine::{
    Check, Commit, Error, ErrorKind, Expect, Expiry, ExpirySupport, Json, Put, Result, Store, Write,
};
use keyward_key::Key;

use crate::Copied;
use crate::rows::Held;
use crate::walk::{Step, Walk};

/// Keys that one batch decides at most, also when there is nothing to write.
const STEPS_MAX: usize = 1_000;
/// Bytes that one commit takes at most, unless a single entry is larger.
const BYTES_MAX: usize = 1 << 20;

/// Keys next to each other that have been decided.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// What to write; may be nothing.
    pub commit: Commit,
    /// What has been done once it is written.
    pub tally: Copied,
}

/// The batches of a walk.
pub(crate) struct Batches<'s> {
    walk: Walk<'s>,
    source: &'s Store,
    target: &'s Store,
    prune: bool,
    /// A step that did not fit the last batch.
    waiting: Option<Step>,
    /// What cannot be copied, told after what stands before it.
    refused: Option<Error>,
}

impl<'s> Batches<'s> {
    /// What makes the target like the source.
    pub fn new(source: &'s Store, target: &'s Store, prune: bool) -> Result<Self> {
        let walk = Walk::new(source, target)?;
        Ok(Self { walk, source, target, prune, waiting: None, refused: None })
    }

    /// The next batch; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Batch>> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        let limits = *self.target.limits();
        let bytes_max = limits.commit_bytes_max.min(BYTES_MAX);
        let mut batch = Batch::default();
        let mut bytes = 0;
        for _ in 0..STEPS_MAX {
            let step = match self.waiting.take() {
                Some(step) => step,
                None => match self.walk.next().await? {
                    Some(step) => step,
                    None => break,
                },
            };
            let size = match &step {
                Step::Equal => 0,
                Step::Extra(_) if !self.prune => 0,
                // Once to be removed, once to be checked.
                Step::Extra(held) => 2 * held.key.as_bytes().len(),
                Step::Missing(held) | Step::Different(held) => {
                    if let Err(error) = fits(held, self.target) {
                        self.refused = Some(error);
                        break;
                    }
                    held.size()
                }
            };
            let writes = batch.commit.writes.len();
            let full = writes >= limits.commit_keys_max || bytes + size > bytes_max;
            if size > 0 && writes > 0 && full {
                self.waiting = Some(step);
                break;
            }
            bytes += size;
            batch.take(step, self.prune, self.target.capabilities().compare);
        }
        self.look_again(&mut batch).await?;
        match self.refused.take() {
            Some(error) if batch.tally == Copied::default() => Err(error),
            refused => {
                self.refused = refused;
                Ok((batch.tally != Copied::default()).then_some(batch))
            }
        }
    }

    /// Leaves alone what the source holds by now. The walk has seen the two stores at two moments; if
    /// they are one store under two names, what was written in between would else be removed.
    async fn look_again(&self, batch: &mut Batch) -> Result<()> {
        let deleted = |write: &Write| match write {
            Write::Delete(key) => Some(key.clone()),
            Write::Put(..) | Write::Add(..) => None,
        };
        let deleted: Vec<Key> = batch.commit.writes.iter().filter_map(deleted).collect();
        if !deleted.is_empty() {
            let now = self.source.get_many(&deleted).await?;
            let held = deleted.into_iter().zip(now).filter(|(_, entry)| entry.is_some());
            batch.leave(&held.map(|(key, _)| key).collect());
        }
        Ok(())
    }
}

impl Batch {
    /// The same batch without some keys that it would have removed from the target.
    pub fn leave(&mut self, keys: &HashSet<Key>) {
        self.commit.writes.retain(|write| !keys.contains(write.key()));
        self.commit.checks.retain(|check| !keys.contains(&check.key));
        self.tally.pruned -= keys.len() as u64;
        self.tally.extra += keys.len() as u64;
    }

    fn take(&mut self, step: Step, prune: bool, compare: bool) {
        let counted = match &step {
            Step::Equal => &mut self.tally.equal,
            Step::Missing(_) => &mut self.tally.added,
            Step::Different(_) => &mut self.tally.replaced,
            Step::Extra(_) if prune => &mut self.tally.pruned,
            Step::Extra(_) => &mut self.tally.extra,
        };
        *counted += 1;
        match step {
            Step::Missing(Held { key, entry }) | Step::Different(Held { key, entry }) => {
                let put = Put {
                    value: entry.value,
                    metadata: entry.metadata,
                    expiry: entry.expires.map(Expiry::At),
                };
                self.commit.writes.push(Write::Put(key, put));
            }
            Step::Extra(Held { key, entry }) if prune => {
                if compare {
                    let expect = Expect::Version(entry.version);
                    self.commit.checks.push(Check { key: key.clone(), expect });
                }
                self.commit.writes.push(Write::Delete(key));
            }
            Step::Equal | Step::Extra(_) => {}
        }
    }
}

/// Refuses what the target cannot hold, by its key.
fn fits(held: &Held, target: &Store) -> Result<()> {
    let Held { key, entry } = held;
    let limits = target.limits();
    let metadata = entry.metadata.as_ref().map_or(0, Json::len);
    for (what, size, max) in [
        ("the key", key.as_bytes().len(), limits.key_bytes_max),
        ("the value", entry.value.len(), limits.value_bytes_max),
        ("the metadata", metadata, limits.metadata_bytes_max),
        ("the whole entry", held.size(), limits.commit_bytes_max),
    ] {
        if size > max {
            let why = format!("{what} is {size} bytes, and the target takes at most {max}");
            return Err(uncopied(ErrorKind::LimitExceeded, key, &why));
        }
    }
    if entry.expires.is_some() && target.capabilities().expiry == ExpirySupport::Unsupported {
        let engine = target.capabilities().engine;
        let why = format!("it expires, which entries of the {engine} engine cannot");
        return Err(uncopied(ErrorKind::Unsupported, key, &why));
    }
    Ok(())
}

fn uncopied(kind: ErrorKind, key: &Key, why: &str) -> Error {
    const SHOWN: usize = 80;
    let mut text = key.to_string();
    if let Some((end, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(end);
        text.push('…');
    }
    Error::new(kind, format!("{text} cannot be copied: {why}"))
}
