use keyward_engine::{Result, Store};
use keyward_key::Key;

use crate::walk::{Step, Walk};

/// How two stores compare.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Keys that hold the same in both.
    pub equal: u64,
    /// Keys that only the source holds.
    pub missing: u64,
    /// Keys that hold something else in the target.
    pub different: u64,
    /// Keys that only the target holds.
    pub extra: u64,
    /// The first keys that are not equal, at most [`Verified::FIRST_MAX`], in key order.
    pub first: Vec<(Key, Difference)>,
}

/// How a key differs between two stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Difference {
    /// Only the source holds it.
    Missing,
    /// The target holds something else.
    Different,
    /// Only the target holds it.
    Extra,
}

impl Verified {
    /// How many keys that are not equal are named.
    pub const FIRST_MAX: usize = 10;
    /// After so many keys progress is told.
    const TOLD_EVERY: u64 = 1_000;

    /// Whether both stores hold exactly the same.
    pub fn is_equal(&self) -> bool {
        self.missing == 0 && self.different == 0 && self.extra == 0
    }

    /// Keys that were compared.
    pub fn keys(&self) -> u64 {
        self.equal + self.missing + self.different + self.extra
    }

    fn differs(&mut self, key: Key, how: Difference) {
        *match how {
            Difference::Missing => &mut self.missing,
            Difference::Different => &mut self.different,
            Difference::Extra => &mut self.extra,
        } += 1;
        if self.first.len() < Self::FIRST_MAX {
            self.first.push((key, how));
        }
    }
}

/// Compares two stores key by key, and writes nothing. Values and metadata are compared byte for
/// byte, ends by the millisecond (rounded up where the target keeps them coarser); versions are
/// each store's own. `progress` is told every now and then.
///
/// Stores that change meanwhile may show differences that are none; an entry that ends meanwhile
/// does not.
pub async fn verify(
    source: &Store,
    target: &Store,
    mut progress: impl FnMut(&Verified),
) -> Result<Verified> {
    let mut walk = Walk::new(source, target)?;
    let mut verified = Verified::default();
    while let Some(step) = walk.next().await? {
        let (holder, held, how) = match step {
            Step::Equal => {
                verified.equal += 1;
                if verified.equal.is_multiple_of(Verified::TOLD_EVERY) {
                    progress(&verified);
                }
                continue;
            }
            Step::Different(held) => {
                verified.differs(held.key, Difference::Different);
                continue;
            }
            Step::Missing(held) => (source, held, Difference::Missing),
            Step::Extra(held) => (target, held, Difference::Extra),
        };
        // The two pages are of two moments, and between them the entry may have ended.
        if held.entry.expires.is_some() && holder.get(&held.key).await?.is_none() {
            continue;
        }
        verified.differs(held.key, how);
    }
    progress(&verified);
    Ok(verified)
}
