//! What all callers have together, of which one credential holds only a part.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::auth::Identity;

/// The part that one credential may hold.
const PART: usize = 4;

/// Places that are held for a while, such as open watches: so many in all, and a quarter of them, at least
/// one, for each credential. The local user, with whom nobody shares, may hold all. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Shares(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    all_max: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    by: HashMap<Holder, usize>,
}

/// By whom a place is held.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Holder {
    tenant: String,
    credential: String,
}

impl Holder {
    pub fn of(who: &Identity) -> Self {
        Self { tenant: who.tenant().name().to_owned(), credential: who.credential().to_owned() }
    }
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// All are held.
    All,
    /// The credential holds all that it may.
    Part,
}

/// A place, held until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    shares: Arc<Inner>,
    holder: Holder,
}

impl Shares {
    /// So many places in all.
    pub fn new(all_max: usize) -> Self {
        Self(Arc::new(Inner { all_max, held: Mutex::default() }))
    }

    /// Takes a place, in one step: of two that come for the last one, one gets it.
    pub fn take(&self, who: &Identity) -> Result<Place, Full> {
        let all_max = self.0.all_max;
        let one_max = if who.is_local() { all_max } else { (all_max / PART).max(1) };
        let holder = Holder::of(who);
        let mut held = self.0.held();
        if held.all >= all_max {
            return Err(Full::All);
        }
        let own = held.by.entry(holder.clone()).or_default();
        if *own >= one_max {
            return Err(Full::Part);
        }
        *own += 1;
        held.all += 1;
        Ok(Place { shares: self.0.clone(), holder })
    }
}

impl Inner {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub fn holder(&self) -> &Holder {
        &self.holder
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.shares.held();
        held.all -= 1;
        if let Some(own) = held.by.get_mut(&self.holder) {
            *own -= 1;
            if *own == 0 {
                held.by.remove(&self.holder);
            }
        }
    }
}
