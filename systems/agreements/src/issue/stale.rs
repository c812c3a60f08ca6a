//! Issues that refer to what has changed.

use jiff::Timestamp;

use super::batch::{Becomes, Item};
use super::{By, Issue, IssueId, PageIssues, What};
use crate::{Result, SourceId};

/// A policy that changed, or is gone.
#[derive(Debug, Clone)]
pub(super) struct Outdated {
    source: SourceId,
    /// When its present state came to be; `None` if it is gone.
    newer_than: Option<Timestamp>,
}

impl Outdated {
    /// Whether an issue refers to an older state, and is not known to.
    pub fn concerns(&self, issue: &Issue) -> bool {
        let is_older = |modified| self.newer_than.is_none_or(|newer| modified < newer);
        let mut references = issue.references();
        !issue.stale && references.any(|it| it.source == self.source && is_older(it.modified))
    }
}

impl PageIssues {
    /// Marks every issue as stale that refers to a state of a policy older than `newer_than`; `None`
    /// if the policy is gone. Says how many were marked. Archived and resolved ones too: it is a fact
    /// about what they refer to, and no decision.
    ///
    /// Takes no lock, so it does not wait for an analysis that holds all issues; an issue that somebody
    /// changes at the same moment is read again. Called again, also after a crash, it marks what is left
    /// and records nothing twice.
    pub async fn mark_stale(
        &self,
        source: &SourceId,
        newer_than: Option<Timestamp>,
        who: &str,
    ) -> Result<usize> {
        let by = By::new(who);
        by.check()?;
        let outdated = Outdated { source: source.clone(), newer_than };
        let mut items = Vec::new();
        for issue in self.all().await? {
            if outdated.concerns(&issue) {
                let what = What::Stale { source: source.clone() };
                let event = self.event(IssueId::random()?, &by, what);
                let becomes = Becomes::Stale(outdated.clone());
                items.push(Item { id: issue.id, becomes, event });
            }
        }
        Ok(self.write_many(None, &items).await?.len())
    }
}
