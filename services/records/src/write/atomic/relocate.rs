//! A record under another key, in one commit.

use keyward_engine::Outcome;
use keyward_key::Key;

use super::plan::{Assembled, Meaning, Plan};
use super::step::{Versions, step};
use super::{ATTEMPTS_MAX, Backoff, look_again};
use crate::access::Admitted;
use crate::change::{Change, Current, Decision};
use crate::history::{Going, Moving};
use crate::relocate::Relocated;
use crate::space::Space;
use crate::{Error, Result};

/// Moves a record to another key, which may be another space's, unless there is a record already.
pub(in crate::write) async fn relocate(
    from: &Space,
    old: &Admitted,
    to: &Space,
    new: &Admitted,
) -> Result<Relocated> {
    to.ensure_indexes().await?;
    let shared = &to.shared;
    let mut catalog = shared.catalog.current(&shared.store, &*shared.clock).await?;
    let keys = [old.key.clone(), new.key.clone()];
    let mut backoff = Backoff::new(shared, &old.key);
    let mut attempts = 0;
    while attempts < ATTEMPTS_MAX {
        if attempts > 1 {
            backoff.pause().await;
        }
        attempts += 1;
        let mut entries = shared.store.get_many(&keys).await?.into_iter();
        let mut current = |key: &Key| {
            let entry = entries.next().flatten();
            entry.map(|entry| Current::new(key.clone(), entry)).transpose()
        };
        let (leaving, there) = (current(&old.key)?, current(&new.key)?);
        let Some(leaving) = leaving else { return Ok(Relocated::Absent) };
        let same = there.as_ref().is_some_and(|there| leaving.says_the_same_as(there));
        if there.is_some() && !same {
            return Ok(Relocated::Taken);
        }
        let mut placing = Change::placing(new.clone(), &leaving);
        let mut decision = placing.decide(&to.access.space, there.as_ref())?;
        if same {
            decision = Decision::Leave;
        }
        // Read after the record: whatever is new by then has moved its version.
        let moving = match same {
            true => None,
            false => Moving::read(from, &old.key, to, &new.key).await?,
        };
        let (removed, placed) = match &moving {
            None => (Versions::Next, Versions::Next),
            Some(moving) => {
                let until_ms = leaving.kept.past_until_ms;
                let placed = match moving.newest() {
                    None => Versions::Next,
                    newest => Versions::Moved { newest, until_ms },
                };
                (Versions::Moved { newest: None, until_ms: None }, placed)
            }
        };
        let (out_of, into) =
            (catalog.kept(&from.access.space.name), catalog.kept(&to.access.space.name));
        let removing = Change::removing(old.clone());
        let removal = Decision::Remove;
        let steps = vec![
            step(from, &out_of, &removing, Some(&leaving), removal, removed).await?,
            step(to, &into, &placing, there.as_ref(), decision, placed).await?,
        ];
        let planned = Plan { steps };
        let Assembled { mut commit, mut meanings, .. } = planned.assemble(to, &catalog)?;
        if let Some(moving) = moving {
            match moving.go(commit, shared.store.limits())? {
                Going::Along(with_versions, checks) => {
                    commit = with_versions;
                    meanings.extend(std::iter::repeat_with(|| Meaning::History).take(checks));
                }
                Going::Ahead(oldest) => {
                    // What went is no attempt that failed: there are fewer left each time.
                    if shared.store.commit(oldest).await?.is_applied() {
                        attempts -= 1;
                    }
                    continue;
                }
            }
        }
        match shared.store.commit(commit).await? {
            Outcome::Applied { .. } => return Ok(Relocated::Moved),
            Outcome::Conflicted { failed } => {
                let failed = failed.iter().filter_map(|&check| meanings.get(check));
                look_again(to, &planned, failed, &mut catalog).await?;
            }
        }
    }
    Err(Error::Contended { key: old.key.clone(), attempts: ATTEMPTS_MAX })
}
