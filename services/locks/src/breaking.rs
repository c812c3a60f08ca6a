//! Taking a lock away from its holder.

use keyward_engine::moment_text;
use std::collections::BTreeSet;

use crate::catalog::{Broken, Claim};
use crate::look::Look;
use crate::{Error, LockPath, Result, Root};

/// Which locks to break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// All that hold exactly this path when the call begins.
    Path(LockPath),
    /// The one with this token.
    Token(u64),
}

impl Target {
    fn is(&self, claim: &Claim) -> bool {
        match self {
            Self::Path(path) => claim.paths.contains(path),
            Self::Token(token) => claim.token == *token,
        }
    }
}

const ATTEMPTS_MAX: usize = 64;
const TEXT_CHARS_MAX: usize = 500;

impl Root {
    /// Takes locks away from their holders, alive or not: a person's decision, so it says who and
    /// why. The catalog remembers it, and the holder is told as the reason of its loss. What the
    /// holder still writes through its guard is refused; where commits have one key, once it is told
    /// or the next holder has updated the same key. Fails if nobody holds such a lock.
    pub async fn break_lock(&self, target: &Target, by: &str, reason: &str) -> Result<Vec<Broken>> {
        let cut = |text: &str| text.chars().take(TEXT_CHARS_MAX).collect::<String>();
        let (by, reason, at) = (cut(by), cut(reason), moment_text(self.shared.now()));
        let mut chosen: Option<BTreeSet<u64>> = None;
        let mut done: Vec<Broken> = Vec::new();
        for _ in 0..ATTEMPTS_MAX {
            let Look { mut catalog, version, .. } = self.look().await?;
            // Whoever gets the lock later is not meant, however often this is tried.
            let meant = chosen.get_or_insert_with(|| {
                let meant = catalog.holders.iter().filter(|claim| target.is(claim));
                meant.map(|claim| claim.token).collect()
            });
            let held = catalog.holders.iter().filter(|claim| meant.contains(&claim.token));
            let targets: Vec<Claim> = held.cloned().collect();
            if targets.is_empty() {
                // An earlier attempt, whose answer was lost, had worked.
                let known = |broken: &Broken| catalog.broken.contains(broken);
                if !done.is_empty() && done.iter().all(known) {
                    return Ok(done);
                }
                let what = match target {
                    Target::Path(path) if meant.is_empty() => {
                        self.names(std::slice::from_ref(path))
                    }
                    Target::Path(_) => {
                        let tokens: Vec<String> = meant.iter().map(u64::to_string).collect();
                        format!("token {} any more", tokens.join(" or "))
                    }
                    Target::Token(token) => format!("token {token}"),
                };
                let held = catalog.holders.iter().map(|claim| self.names(&claim.paths));
                let held = match held.collect::<Vec<_>>().join(", ") {
                    nothing if nothing.is_empty() => "nothing".to_owned(),
                    held => held,
                };
                return Err(Error::NotHeld { root: self.key().clone(), what, held });
            }
            let broken: Vec<Broken> =
                targets.iter().map(|claim| catalog.break_claim(claim, &by, &reason, &at)).collect();
            let mut commit = self.replacing(version.as_ref(), &catalog)?;
            if self.shared.is_atomic() {
                for claim in &targets {
                    commit = commit
                        .delete(self.fence_key(claim.token))
                        .delete(self.lease_key(claim.token));
                }
            }
            match self.shared.store.commit(commit).await {
                Ok(outcome) if outcome.is_applied() => return Ok(broken),
                Ok(_) => {}
                Err(error) => {
                    let error = Error::from(error);
                    if !error.is_passing() {
                        return Err(error);
                    }
                    done = broken;
                }
            }
        }
        Err(Error::Contended { key: self.key().clone(), attempts: ATTEMPTS_MAX })
    }
}
