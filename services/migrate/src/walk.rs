//! Two stores side by side, in key order.

use std::cmp::Ordering;
use std::time::Duration;

use keyward_engine::{Entry, ExpirySupport, Result, Store};

use crate::rows::{Held, Rows};

/// How one key stands in the two stores.
#[derive(Debug)]
pub(crate) enum Step {
    /// Both hold the same.
    Equal,
    /// Only the source holds it: this.
    Missing(Held),
    /// The source holds this, the target something else.
    Different(Held),
    /// Only the target holds it: this.
    Extra(Held),
}

/// The keys of both stores, one after the other.
///
/// A key is decided only when the target's rows up to it have been read, so what is written
/// behind the walk is never read by it again.
pub(crate) struct Walk<'s> {
    source: Rows<'s>,
    target: Rows<'s>,
    /// The target keeps ends as multiples of this.
    granularity_ms: i64,
}

impl<'s> Walk<'s> {
    /// Both stores from their beginning.
    pub fn new(source: &'s Store, target: &'s Store) -> Result<Self> {
        let granularity = match target.capabilities().expiry {
            ExpirySupport::Supported { granularity, .. } => granularity,
            ExpirySupport::Unsupported => Duration::ZERO,
        };
        let granularity_ms = i64::try_from(granularity.as_millis()).unwrap_or(1).max(1);
        Ok(Self { source: Rows::of(source)?, target: Rows::of(target)?, granularity_ms })
    }

    /// The next key of either store; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Step>> {
        let order = match (self.source.peek().await?, self.target.peek().await?) {
            (None, None) => return Ok(None),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(source), Some(target)) => source.key.cmp(&target.key),
        };
        Ok(match order {
            Ordering::Less => self.source.take().map(Step::Missing),
            Ordering::Greater => self.target.take().map(Step::Extra),
            Ordering::Equal => {
                self.source.take().zip(self.target.take()).map(|(source, target)| {
                    if self.same(&source.entry, &target.entry) {
                        Step::Equal
                    } else {
                        Step::Different(source)
                    }
                })
            }
        })
    }

    /// Whether the target's entry is what a copy of the source's would be. Versions are each
    /// store's own.
    fn same(&self, source: &Entry, target: &Entry) -> bool {
        let kept_ms = source.expires.map(|end| {
            let ms = end.as_millisecond();
            // Ends are rounded up.
            ms.saturating_add((-ms).rem_euclid(self.granularity_ms))
        });
        source.value == target.value
            && source.metadata == target.metadata
            && kept_ms == target.expires.map(|end| end.as_millisecond())
    }
}
