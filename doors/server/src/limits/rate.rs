//! So many requests at once, and then so many each second: a bucket of tokens for each caller.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

/// How many callers are remembered in each of two generations.
const REMEMBERED_MAX: usize = 32_768;
const SECOND_NANOS: i128 = 1_000_000_000;

/// How often a caller may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many requests a second, in the long run; at least one.
    pub per_second: u32,
    /// How many at once, after a rest; at least one.
    pub burst: u32,
}

impl Rate {
    fn sound(self) -> Self {
        Self { per_second: self.per_second.max(1), burst: self.burst.max(1) }
    }

    /// What one request costs, as time.
    fn cost(self) -> i128 {
        SECOND_NANOS / i128::from(self.per_second)
    }

    /// How long an empty bucket takes to be full.
    fn depth(self) -> i128 {
        self.cost() * i128::from(self.burst)
    }

    /// The same in whole seconds.
    pub(super) fn window(self) -> u64 {
        seconds(self.depth())
    }
}

/// What came of a request for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    pub granted: bool,
    /// How many more would be granted now.
    pub remaining: u32,
    /// When the bucket is full again.
    pub full_seconds: u64,
    /// When to try again; 0, if it was granted.
    pub retry_seconds: u64,
}

/// A bucket for each caller. A bucket is kept as the moment at which it is full again: those of the
/// past need not be kept at all.
///
/// There are two generations: once the younger one is full, the older one is forgotten, and with it
/// those who have not asked for longest. Somebody forgotten begins with a full bucket.
#[derive(Debug)]
pub(super) struct Buckets<K> {
    rate: Rate,
    full_at: Mutex<Generations<K>>,
}

#[derive(Debug)]
struct Generations<K> {
    young: HashMap<K, i128>,
    old: HashMap<K, i128>,
}

impl<K: Hash + Eq + Clone> Buckets<K> {
    pub fn new(rate: Rate) -> Self {
        let generations = Generations { young: HashMap::new(), old: HashMap::new() };
        Self { rate: rate.sound(), full_at: Mutex::new(generations) }
    }

    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Whether a caller has no token left.
    pub fn is_empty(&self, who: &K, now: Timestamp) -> bool {
        let now = now.as_nanosecond();
        let (cost, depth) = (self.rate.cost(), self.rate.depth());
        let generations = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let known = generations.young.get(who).or_else(|| generations.old.get(who)).copied();
        known.is_some_and(|full_at| full_at.clamp(now, now + depth) + cost - now > depth)
    }

    /// Takes a token of a caller's.
    pub fn take(&self, who: &K, now: Timestamp) -> Taken {
        let now = now.as_nanosecond();
        let (cost, depth) = (self.rate.cost(), self.rate.depth());
        let mut generations = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let known = generations.young.get(who).or_else(|| generations.old.get(who)).copied();
        // A clock that was set back must not make anybody wait longer than for an empty bucket.
        let before = known.map_or(now, |full_at| full_at.clamp(now, now + depth));
        let granted = before + cost - now <= depth;
        let full_at = if granted { before + cost } else { before };
        if generations.young.len() >= REMEMBERED_MAX && !generations.young.contains_key(who) {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(who.clone(), full_at);
        drop(generations);
        let missing = full_at - now;
        Taken {
            granted,
            remaining: u32::try_from((depth - missing) / cost).unwrap_or(0),
            full_seconds: seconds(missing),
            retry_seconds: if granted { 0 } else { seconds(missing + cost - depth).max(1) },
        }
    }
}

/// Nanoseconds as seconds, rounded up.
fn seconds(nanos: i128) -> u64 {
    u64::try_from((nanos + SECOND_NANOS - 1) / SECOND_NANOS).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_767_225_600_000 + millis).unwrap()
    }

    #[test]
    fn a_burst_is_granted_and_then_as_much_as_comes_in() {
        let buckets = Buckets::new(Rate { per_second: 2, burst: 3 });
        let left: Vec<_> = (0..3).map(|_| buckets.take(&"a", at(0)).remaining).collect();
        assert_eq!(left, [2, 1, 0]);
        assert!(buckets.is_empty(&"a", at(0)) && !buckets.is_empty(&"b", at(0)));
        let refused = buckets.take(&"a", at(0));
        assert_eq!((refused.granted, refused.retry_seconds, refused.full_seconds), (false, 1, 2));
        assert!(!buckets.take(&"a", at(499)).granted);
        assert!(!buckets.is_empty(&"a", at(500)));
        assert!(buckets.take(&"a", at(500)).granted);
        assert!(!buckets.take(&"a", at(501)).granted);
        assert!(buckets.take(&"b", at(501)).granted, "one caller is not another");
        assert_eq!(buckets.take(&"a", at(60_000)).remaining, 2, "a bucket is never more than full");
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        let buckets = Buckets::new(Rate { per_second: 1, burst: 1 });
        assert!(buckets.take(&(), at(3_600_000)).granted);
        assert!(!buckets.take(&(), at(0)).granted);
        assert!(buckets.take(&(), at(1_000)).granted);
    }

    #[test]
    fn callers_without_number_take_a_bounded_space() {
        let buckets = Buckets::new(Rate { per_second: 1, burst: 1 });
        for caller in 0..REMEMBERED_MAX * 3 {
            buckets.take(&caller, at(0));
        }
        let generations = buckets.full_at.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= REMEMBERED_MAX * 2);
        drop(generations);
        assert!(!buckets.take(&(REMEMBERED_MAX * 3 - 1), at(0)).granted, "the last is remembered");
    }
}
