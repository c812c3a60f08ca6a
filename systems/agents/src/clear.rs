//! All entries of a namespace at once.

use keyward_engine::{Commit, ErrorKind, Tier};
use keyward_key::Key;
use keyward_records::{Error as RecordsError, LIMIT_MAX, Operation, Precondition, Written};

use crate::namespace::Namespace;
use crate::track::Line;
use crate::{Result, places};

/// How many entries are removed in one commit.
const TOGETHER_MAX: usize = 100;

impl Namespace {
    /// How many entries have keys that start with `prefix` (all, if it is empty): what
    /// [`Namespace::clear`] would remove. Only keys are read, page by page.
    pub async fn count(&self, prefix: &str) -> Result<usize> {
        let (mut count, mut after) = (0, None);
        loop {
            let (keys, next) = self.page_of_keys(prefix, after, LIMIT_MAX).await?;
            count += keys.len();
            match next {
                Some(next) => after = Some(next),
                None => return Ok(count),
            }
        }
    }

    /// Removes every entry whose key starts with `prefix` (all, if it is empty), with what is known
    /// about accesses, and gives their number. What is set meanwhile may stay.
    ///
    /// Many are removed in several commits: when one fails, what the earlier ones removed is gone, and
    /// calling this again goes on.
    pub async fn clear(&self, prefix: &str) -> Result<usize> {
        self.clear_up_to(prefix, usize::MAX).await
    }

    /// The same, but removes at most `most` entries, the first in the order of their keys: for callers who have
    /// confirmed how many there are. Entries that are made meanwhile are then not removed on top of these.
    pub async fn clear_up_to(&self, prefix: &str, most: usize) -> Result<usize> {
        let (mut removed, mut after) = (0, None);
        let mut together_max = TOGETHER_MAX;
        while removed < most {
            let (keys, next) = self.page_of_keys(prefix, after, TOGETHER_MAX).await?;
            let mut rest = keys.as_slice();
            // Some are gone by the time they are removed, and others of the page take their place.
            while removed < most && !rest.is_empty() {
                let (some, later) = rest.split_at(rest.len().min(most - removed));
                removed += self.remove(some, &mut together_max).await?;
                rest = later;
            }
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        self.log(Line { count: Some(removed), ..Line::of("clear") });
        Ok(removed)
    }

    async fn remove(&self, places: &[Key], together_max: &mut usize) -> Result<usize> {
        if self.space.guarantee() != Tier::Atomic {
            let mut removed = 0;
            for place in places {
                removed += usize::from(self.delete(&self.key_of(place)).await?);
            }
            return Ok(removed);
        }
        let (mut removed, mut rest) = (0, places);
        while !rest.is_empty() {
            let (some, later) = rest.split_at(rest.len().min(*together_max));
            let rows = some.iter().map(places::access);
            let space = self.space.clone().with_rider(rows.fold(Commit::new(), Commit::delete));
            let known: Vec<_> = some.iter().map(|it| self.shared().tracker.born(it)).collect();
            let delete = |place: &Key| Operation::Delete(place.clone(), Precondition::Any);
            match space.together(some.iter().map(delete).collect()).await {
                Ok(written) => {
                    removed += written.iter().filter(|it| **it == Written::Removed).count();
                    for (place, born) in some.iter().zip(&known) {
                        self.shared().tracker.forget(place, born);
                    }
                    rest = later;
                }
                Err(RecordsError::Store(error))
                    if error.kind() == ErrorKind::LimitExceeded && some.len() > 1 =>
                {
                    *together_max = some.len() / 2;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(removed)
    }
}
