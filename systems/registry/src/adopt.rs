//! Messages that the original left in a store, taken into the registry's queue.

use keyward_engine::{Commit, Entry, Scan};
use keyward_locks::Guard;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::apply::Writing;
use crate::{Operation, Policy, Registry, Result, Step};

/// How many messages are read at once.
const PAGE: usize = 200;
/// What stands in the place of a run's id in what no run of ours found.
const RUN: &str = "adopted";

/// A message as the original writes it: without a state, and with no place in line.
#[derive(Deserialize)]
struct Original {
    sha: String,
    operation: Operation,
    #[serde(default)]
    state: Option<IgnoredAny>,
}

impl Registry {
    /// Puts the messages that the original left in line, so that consumers are told of them. Each in one commit;
    /// doing it again changes nothing.
    pub(crate) async fn adopt_messages(&self, guard: &Guard) -> Result<()> {
        let inner = &self.inner;
        let writing = Writing { registry: self, guard, run: RUN, keeps_deprecated: true };
        let mut scan = Scan::new(inner.places.messages()).limit(PAGE);
        loop {
            let page = inner.store.scan(&scan).await?;
            for row in page.rows {
                let (Some(policy), Some(entry)) =
                    (inner.places.name_of_message(&row.key), row.entry)
                else {
                    continue;
                };
                let read = serde_json::from_slice::<Original>(entry.value.as_bytes()).ok();
                let Some(original) = read.filter(|read| read.state.is_none()) else { continue };
                let known = inner.store.get(&inner.places.policy(&policy)).await?;
                let step = step(policy, original, known.as_ref());
                let message = writing.message(&step, known.as_ref())?;
                let (commit, _) = inner.queue.enqueue_in(Commit::new(), vec![message]).await?;
                // Whoever changed it in between has a message of their own.
                let _changed = guard.commit(commit).await?;
            }
            match page.next {
                Some(next) => scan = scan.after(Some(next)),
                None => return Ok(()),
            }
        }
    }
}

fn step(policy: String, original: Original, known: Option<&Entry>) -> Step {
    let known = known.map(|entry| Policy::of(&policy, entry.value.clone()));
    let (title, path) = known.map(|known| (known.title, known.path)).unwrap_or_default();
    Step {
        operation: original.operation,
        policy_name: policy,
        title,
        sha: original.sha,
        path,
        old_sha: None,
        old_path: None,
        renamed_from: None,
        moved_from_title: None,
    }
}
