//! Credentials that were shown of late, so that strangers do not reach the control store.
//!
//! A credential that was refused is refused again for a moment without asking the store. Of those that
//! come from addresses that send too many bad ones, only those are looked up that were good of late,
//! and a few others each second: whoever makes up a new one each time gets no further than this
//! table, and whoever shares an address with them still gets in after some tries. A good credential
//! is looked up each time, so that a revoked one is refused at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use blake3::Hash;
use jiff::Timestamp;
use keyward::Clock;

use super::Refusal;

/// How long a refusal is remembered.
const REFUSED_TIME: Duration = Duration::from_secs(5);
/// How many credentials of addresses that send too many bad ones are looked up in a second.
const LOOKUPS_PER_SECOND: u32 = 10;
/// How long it is remembered that a credential was good.
const GOOD_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// How many credentials are remembered in each of two generations.
const REMEMBERED_MAX: usize = 16_384;

/// Credentials that were shown of late, by the hash of their text.
#[derive(Debug)]
pub(super) struct Strangers {
    refused: Mutex<Remembered<Refusal>>,
    good: Mutex<Remembered<()>>,
    /// The second that it is, and the lookups of doubtful credentials in it.
    lookups: Mutex<(i64, u32)>,
    clock: Arc<dyn Clock>,
}

/// How the store is to be asked about a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// Always.
    Due,
    /// Unless its address has sent too many bad ones.
    Doubtful,
    /// Not now: it was refused a moment ago.
    Refused(Refusal),
}

impl Strangers {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            refused: Mutex::new(Remembered::new(REFUSED_TIME)),
            good: Mutex::new(Remembered::new(GOOD_TIME)),
            lookups: Mutex::default(),
            clock,
        }
    }

    /// What is remembered of a credential.
    pub fn lookup(&self, credential: &Hash) -> Lookup {
        let now = self.clock.now();
        if let Some(refusal) = locked(&self.refused).get(credential, now) {
            return Lookup::Refused(refusal);
        }
        match locked(&self.good).get(credential, now) {
            Some(()) => Lookup::Due,
            None => Lookup::Doubtful,
        }
    }

    /// Takes one of the few lookups for credentials of addresses that send too many bad ones.
    pub fn spare_lookup(&self) -> bool {
        let now = self.clock.now().as_second();
        let mut lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        let (second, count) = &mut *lookups;
        if *second != now {
            (*second, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= LOOKUPS_PER_SECOND
    }

    /// Remembers what the store said of a credential.
    pub fn remember(&self, credential: Hash, refused: Option<Refusal>) {
        let now = self.clock.now();
        match refused {
            None => locked(&self.good).insert(credential, (), now),
            Some(refusal) => {
                locked(&self.good).remove(&credential);
                locked(&self.refused).insert(credential, refusal, now);
            }
        }
    }
}

fn locked<V>(remembered: &Mutex<Remembered<V>>) -> MutexGuard<'_, Remembered<V>> {
    remembered.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is remembered for a while, in two generations: once the younger one is full, the older one is
/// forgotten.
#[derive(Debug)]
struct Remembered<V> {
    time: Duration,
    young: HashMap<Hash, (Timestamp, V)>,
    old: HashMap<Hash, (Timestamp, V)>,
}

impl<V: Copy> Remembered<V> {
    fn new(time: Duration) -> Self {
        Self { time, young: HashMap::new(), old: HashMap::new() }
    }

    fn get(&self, key: &Hash, now: Timestamp) -> Option<V> {
        let (at, value) = self.young.get(key).or_else(|| self.old.get(key))?;
        // By the distance: a clock that was set back must not make anything last.
        (now.duration_since(*at).unsigned_abs() < self.time).then_some(*value)
    }

    fn insert(&mut self, key: Hash, value: V, now: Timestamp) {
        if self.young.len() >= REMEMBERED_MAX && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, (now, value));
    }

    fn remove(&mut self, key: &Hash) {
        self.young.remove(key);
        self.old.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyward_testkit::TestClock;

    #[test]
    fn a_refusal_is_remembered_for_a_moment_and_a_good_credential_for_long() {
        let clock = TestClock::new();
        let strangers = Strangers::new(Arc::new(clock.clone()));
        let (bad, good) = (blake3::hash(b"bad"), blake3::hash(b"good"));
        assert_eq!(strangers.lookup(&good), Lookup::Doubtful);
        strangers.remember(bad, Some(Refusal::Unknown));
        strangers.remember(good, None);
        assert_eq!(strangers.lookup(&bad), Lookup::Refused(Refusal::Unknown));
        assert_eq!(strangers.lookup(&good), Lookup::Due);
        clock.advance(REFUSED_TIME);
        assert_eq!(strangers.lookup(&bad), Lookup::Doubtful);
        assert_eq!(strangers.lookup(&good), Lookup::Due);
        // Somebody revoked it.
        strangers.remember(good, Some(Refusal::Revoked));
        assert_eq!(strangers.lookup(&good), Lookup::Refused(Refusal::Revoked));
        clock.advance(REFUSED_TIME);
        assert_eq!(strangers.lookup(&good), Lookup::Doubtful);
    }

    #[test]
    fn credentials_without_number_take_a_bounded_space() {
        let mut remembered = Remembered::new(REFUSED_TIME);
        let now = Timestamp::UNIX_EPOCH;
        for n in 0..REMEMBERED_MAX * 3 {
            remembered.insert(blake3::hash(&n.to_be_bytes()), (), now);
        }
        assert!(remembered.young.len() + remembered.old.len() <= 2 * REMEMBERED_MAX);
    }
}
