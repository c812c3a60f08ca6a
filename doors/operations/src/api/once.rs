//! Changes of queues and jobs that are made once, however often they are asked for.

use keyward::queue::{self, Jobs, Queue};
use keyward::{Commit, Outcome, Store};

use super::records::contended;
use crate::idempotency::Mark;
use crate::problem::{Problem, Result};

/// How often a change is tried when the same request comes several times at once.
const TRIES_MAX: usize = 32;

/// What came of a change.
pub enum Made {
    /// It was made.
    Changed,
    /// There was nothing to change; this is told.
    Unchanged(&'static str),
    /// It is not made as things are, and may be asked for again.
    Refused(Problem),
}

/// What is told about a change, in a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    pub word: String,
    /// Whether an earlier request with the same idempotency key made it.
    pub replayed: bool,
}

/// What changes are made with, which can carry something else in their commit.
pub trait Carries {
    /// Where the changes are made.
    fn store(&self) -> &Store;
    /// The same, whose changes carry this with them.
    fn carrying(&self, rider: Commit) -> Self;
}

impl Carries for Jobs {
    fn store(&self) -> &Store {
        self.store()
    }

    fn carrying(&self, rider: Commit) -> Self {
        self.with_rider(rider)
    }
}

impl Carries for Queue {
    fn store(&self) -> &Store {
        self.store()
    }

    fn carrying(&self, rider: Commit) -> Self {
        self.with_rider(rider)
    }
}

/// Makes a change, and remembers it in the same commit if the request is marked. `word` is what is
/// told if something was changed.
pub async fn once<C: Carries + Clone, F>(
    queues: &C,
    mark: Option<&Mark>,
    word: &str,
    make: impl Fn(C) -> F,
) -> Result<Once>
where
    F: Future<Output = queue::Result<Made>>,
{
    let told = |word: &str, replayed| Once { word: word.to_owned(), replayed };
    let store = queues.store();
    let Some(mark) = mark else {
        return match make(queues.clone()).await? {
            Made::Changed => Ok(told(word, false)),
            Made::Unchanged(word) => Ok(told(word, false)),
            Made::Refused(problem) => Err(problem),
        };
    };
    for _ in 0..TRIES_MAX {
        if let Some(replay) = mark.replay(store).await? {
            return Ok(told(replay.told.as_deref().unwrap_or(word), true));
        }
        let riding = queues.carrying(mark.telling(store, Commit::new(), word)?);
        match make(riding).await {
            Ok(Made::Changed) => return Ok(told(word, false)),
            Ok(Made::Unchanged(word)) => {
                let alone = mark.telling(store, Commit::new(), word)?;
                if let Outcome::Applied { .. } = store.commit(alone).await? {
                    return Ok(told(word, false));
                }
            }
            // What is in the way may be that the same request was done a moment ago.
            Ok(Made::Refused(problem)) => match mark.replay(store).await? {
                Some(_) => {}
                None => return Err(problem),
            },
            Err(queue::Error::RiderRefused { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(contended("the same thing"))
}
