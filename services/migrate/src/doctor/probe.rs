use futures_util::future::join_all;
use keyward_engine::{Clock, Commit, ErrorKind, Expect, Json, Outcome, Put, Store, Tier};
use keyward_key::Key;

use crate::error::{Error, Result};

/// How many writers go at one version at once.
const WRITERS: usize = 16;
/// How often.
const ROUNDS: usize = 8;

/// Whether an engine compares and swaps as it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probed {
    /// Each time exactly one of the writers won.
    Sound {
        /// How often it was tried.
        rounds: usize,
    },
    /// More than one writer won, or a winner's write was not there: what is built on it cannot be
    /// trusted.
    Broken {
        /// How many won.
        winners: usize,
    },
    /// It was not known of some writers whether they won.
    Unclear,
    /// The engine does not say that it could.
    Unsupported,
}

/// Lets many writers go at one version of a scratch key below `system:probe` at once, several times:
/// exactly one may win each time.
pub async fn probe(store: &Store, clock: &dyn Clock) -> Result<Probed> {
    if store.capabilities().tier() == Tier::Advisory {
        return Ok(Probed::Unsupported);
    }
    let moment = clock.now().as_nanosecond().to_string();
    let key = Key::from_segments(["system", "probe", &moment])
        .map_err(|error| Error::Damaged(error.to_string()))?;
    let probed = rounds(store, &key).await;
    store.delete(key).await?;
    probed
}

async fn rounds(store: &Store, key: &Key) -> Result<Probed> {
    store.put(key.clone(), Put::new(Json::from_integer(-1))).await?;
    for _ in 0..ROUNDS {
        let Some(entry) = store.get(key).await? else { return Ok(Probed::Broken { winners: 0 }) };
        let writers = (0..WRITERS).map(|writer| {
            let number = i64::try_from(writer).unwrap_or_default();
            let commit = Commit::new()
                .check(key.clone(), Expect::Version(entry.version.clone()))
                .put(key.clone(), Put::new(Json::from_integer(number)));
            async move { (number, store.commit(commit).await) }
        });
        let mut winners = Vec::new();
        let mut unclear = false;
        for (number, outcome) in join_all(writers).await {
            match outcome {
                Ok(Outcome::Applied { .. }) => winners.push(number),
                Ok(Outcome::Conflicted { .. }) => {}
                Err(error) if error.kind() == ErrorKind::OutcomeUnknown => unclear = true,
                // It did nothing, so it does not count.
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                Err(error) => return Err(error.into()),
            }
        }
        let [winner] = winners[..] else {
            if unclear && winners.is_empty() {
                return Ok(Probed::Unclear);
            }
            return Ok(Probed::Broken { winners: winners.len() });
        };
        let held = store.get(key).await?.and_then(|entry| entry.value.as_integer());
        if held != Some(winner) {
            return Ok(Probed::Broken { winners: 1 });
        }
    }
    Ok(Probed::Sound { rounds: ROUNDS })
}
