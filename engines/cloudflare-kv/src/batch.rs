//! Writes that arrive together go out together: the API takes ten thousand in one request, and few requests a second.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use futures_util::future::{Either, join, select};
use keyward_engine::{Error, ErrorKind, Result};
use tokio::sync::{Semaphore, oneshot};

use crate::client::{Client, Pair};
use crate::error;

/// The most pairs in one request.
const PAIRS_MAX: usize = 10_000;
/// Well below the 100 MB that a request may have, since text in JSON is longer than it is.
const BYTES_MAX: usize = 40_000_000;
/// How many batches are sent at the same time.
const BATCHES_MAX: usize = 4;
/// How many requests are spent on finding the refused pairs of a batch: 29 find one of ten thousand.
const SEARCH_REQUESTS_MAX: usize = 128;

/// A write of one name.
#[derive(Debug, Clone)]
pub(crate) enum NameWrite {
    Put(Pair),
    Delete(String),
}

impl NameWrite {
    fn name(&self) -> &str {
        match self {
            Self::Put(pair) => &pair.key,
            Self::Delete(name) => name,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Put(pair) => {
                let metadata = pair.metadata.as_ref().map_or(0, |metadata| metadata.get().len());
                pair.key.len() + pair.value.len() + metadata
            }
            Self::Delete(name) => name.len(),
        }
    }
}

/// Sends writes of many callers in few requests. Whoever gets a permit sends what waits, for others too.
#[derive(Debug)]
pub(crate) struct Batches {
    waiting: Mutex<Vec<Waiting>>,
    permits: Semaphore,
}

#[derive(Debug)]
struct Waiting {
    write: NameWrite,
    done: oneshot::Sender<Result<()>>,
}

impl Batches {
    pub fn new() -> Self {
        Self { waiting: Mutex::default(), permits: Semaphore::new(BATCHES_MAX) }
    }

    /// Makes a write. One that is dropped is not made, unless it is under way already.
    pub async fn write(&self, client: &Client, write: NameWrite) -> Result<()> {
        let mut caller = Caller { batches: self, is_answered: false };
        loop {
            let (done, answer) = oneshot::channel();
            self.waiting().push(Waiting { write: write.clone(), done });
            // Those that begin at the same moment get in line first.
            tokio::task::yield_now().await;
            // Without an answer, somebody who was sending it was dropped. Writing twice is as good as once.
            if let Some(result) = self.answered(client, answer).await {
                caller.is_answered = true;
                return result;
            }
        }
    }

    async fn answered(
        &self,
        client: &Client,
        mut answer: oneshot::Receiver<Result<()>>,
    ) -> Option<Result<()>> {
        loop {
            let permit = Box::pin(self.permits.acquire());
            let permit = match select(&mut answer, permit).await {
                Either::Left((result, _)) => return result.ok(),
                Either::Right((permit, _)) => permit.ok(),
            };
            let batch = self.next_batch();
            if batch.is_empty() {
                drop(permit);
                return answer.await.ok();
            }
            send(client, batch).await;
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what fits into one request: from the front, up to the second write of one name.
    fn next_batch(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting();
        let (mut names, mut bytes) = (HashSet::new(), 0);
        for one in waiting.iter() {
            bytes += one.write.bytes();
            let has_room = names.is_empty() || (names.len() < PAIRS_MAX && bytes <= BYTES_MAX);
            if !has_room || !names.insert(one.write.name()) {
                break;
            }
        }
        let count = names.len();
        waiting.drain(..count).collect()
    }
}

/// Somebody who waits for a write. Whoever goes away before the answer takes the write out of the line: sent later, it
/// would land on what others have written since.
struct Caller<'b> {
    batches: &'b Batches,
    is_answered: bool,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            // What waits for the answer is dropped before this.
            self.batches.waiting().retain(|one| !one.done.is_closed());
        }
    }
}

async fn send(client: &Client, batch: Vec<Waiting>) {
    let (puts, deletes): (Vec<_>, Vec<_>) =
        batch.into_iter().partition(|one| matches!(one.write, NameWrite::Put(_)));
    join(send_puts(client, puts), send_deletes(client, deletes)).await;
}

/// Sends pairs together. If they are refused, each half is sent by itself, until the refused pairs are
/// alone: the others need not fail with them. When too many are refused, the rest is no longer split.
async fn send_puts(client: &Client, puts: Vec<Waiting>) {
    let mut parts = vec![puts];
    let mut requests = 0;
    while let Some(mut part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        let pairs = part.iter().filter_map(|one| pair(&one.write));
        let result = client.put(pairs.collect()).await;
        requests += 1;
        match result {
            Err(error) if part.len() > 1 && is_about_content(&error) => {
                if requests < SEARCH_REQUESTS_MAX {
                    let second = part.split_off(part.len() / 2);
                    parts.extend([second, part]);
                } else {
                    let together = error::of_some(&error, part.len());
                    tell(part, &Err(together));
                }
            }
            result => tell(part, &result),
        }
    }
}

async fn send_deletes(client: &Client, deletes: Vec<Waiting>) {
    if deletes.is_empty() {
        return;
    }
    let names = deletes.iter().map(|one| one.write.name().to_owned()).collect();
    tell(deletes, &client.delete(names).await);
}

/// Tells all how it ended. Those who no longer wait do not hear it.
fn tell(batch: Vec<Waiting>, result: &Result<()>) {
    for one in batch {
        let _ = one.done.send(match result {
            Ok(()) => Ok(()),
            Err(error) => Err(error::again(error)),
        });
    }
}

fn is_about_content(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::LimitExceeded | ErrorKind::Internal | ErrorKind::Invalid)
}

fn pair(write: &NameWrite) -> Option<(String, Pair)> {
    match write {
        NameWrite::Put(pair) => Some((pair.key.clone(), pair.clone())),
        NameWrite::Delete(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::{Options, Token};

    #[tokio::test]
    async fn a_write_that_is_dropped_while_it_waits_is_forgotten() {
        let mut options = Options::new("account", "namespace");
        options.token = Some(Token::new("token").unwrap());
        let (client, batches) = (Client::new(&options).unwrap(), Batches::new());
        // As if all requests that may be under way were.
        let permits = batches.permits.acquire_many(BATCHES_MAX as u32).await.unwrap();
        let write = |name: &str| Box::pin(batches.write(&client, NameWrite::Delete(name.into())));
        let mut kept = write("kept");
        for name in ["cancelled", "also", "cancelled"] {
            let mut cancelled = write(name);
            for _ in 0..3 {
                assert!(cancelled.as_mut().now_or_never().is_none(), "it waits for its turn");
                assert!(kept.as_mut().now_or_never().is_none());
            }
            assert_eq!(batches.waiting().len(), 2);
        }
        let batch = batches.next_batch();
        let names: Vec<&str> = batch.iter().map(|one| one.write.name()).collect();
        assert_eq!(names, ["kept"]);
        drop((batch, permits));
    }
}
