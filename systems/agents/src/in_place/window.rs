//! The keys that were listed lately.
//!
//! The database lists documents in the order of their ids, whose keys are in base64; a listing has them in the order of
//! the keys. So the first page of a listing takes all of them, and the next pages go on from what is remembered here: a
//! window of many keys, the nearest to where the page began.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::Order;
use keyward_key::{Key, KeyRange};

use super::bounded::Bounded;
use super::place::Part;

/// How many keys a window has, and how many bytes.
const KEYS_MAX: usize = 100_000;
const BYTES_MAX: usize = 32 << 20;
/// How many windows are remembered, and how many bytes their keys have at most.
const WINDOWS_MAX: usize = 16;
const WINDOWS_BYTES_MAX: usize = 64 << 20;
/// How long a window is used after it was listed; or this many times as long as listing it took, if that is longer. So
/// going through a large namespace, listings take a tenth of the time at most.
const AGE_MAX: Duration = Duration::from_secs(10);
const AGE_TIMES: u32 = 10;
const AGE_LIMIT: Duration = Duration::from_secs(60 * 60);

/// A part of documents, their user, and their namespace or all of the user's.
pub(super) type Listed = (Part, String, Option<String>);

/// When a listing began: by the clock, and by the number of the last change before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub at: Timestamp,
    pub change: u64,
}

/// All keys that lie in a range, in order.
#[derive(Debug, Clone)]
pub(super) struct Window {
    pub began: Moment,
    /// When its last page was read.
    ended: Timestamp,
    covers: KeyRange,
    keys: Arc<[Key]>,
}

/// The nearest keys of a range, while they are found in another order.
#[derive(Debug)]
pub(super) struct Gathering {
    began: Moment,
    covers: KeyRange,
    order: Order,
    keys: Vec<Key>,
    bytes: usize,
    keys_max: usize,
    bytes_max: usize,
}

impl Gathering {
    /// For a scan of a range: what lies behind its beginning, in the direction of the scan.
    pub fn new(range: &KeyRange, order: Order, began: Moment) -> Self {
        let covers = match order {
            Order::Ascending => KeyRange::from_bounds(range.start().to_vec(), None::<Vec<u8>>),
            Order::Descending => KeyRange::from_bounds(Vec::new(), range.end().map(<[u8]>::to_vec)),
        };
        let (keys_max, bytes_max) = (KEYS_MAX, BYTES_MAX);
        Self { began, covers, order, keys: Vec::new(), bytes: 0, keys_max, bytes_max }
    }

    pub fn add(&mut self, key: Key) {
        if !self.covers.contains(&key) {
            return;
        }
        self.bytes += bytes(&key);
        self.keys.push(key);
        if self.keys.len() > self.keys_max || self.bytes > self.bytes_max {
            self.shorten();
        }
    }

    /// Drops the farther half. What is left is still everything that lies so near.
    fn shorten(&mut self) {
        self.sort();
        let half = self.keys.len() / 2;
        match self.order {
            Order::Ascending => {
                self.keys.truncate(half);
                if let Some(last) = self.keys.last() {
                    let end = KeyRange::exactly(last).end().map(<[u8]>::to_vec);
                    self.covers = KeyRange::from_bounds(self.covers.start().to_vec(), end);
                }
            }
            Order::Descending => {
                self.keys.drain(..half);
                if let Some(first) = self.keys.first() {
                    let end = self.covers.end().map(<[u8]>::to_vec);
                    self.covers = KeyRange::from_bounds(first.to_bytes(), end);
                }
            }
        }
        self.bytes = self.keys.iter().map(bytes).sum();
    }

    fn sort(&mut self) {
        self.keys.sort_unstable();
        self.keys.dedup();
    }

    pub fn finish(mut self, ended: Timestamp) -> Window {
        self.sort();
        Window { began: self.began, ended, covers: self.covers, keys: self.keys.into() }
    }
}

impl Window {
    /// The first keys of a range in the direction of a scan, without those that are left out; `None` if the window does
    /// not reach so far.
    pub fn first(
        &self,
        range: &KeyRange,
        order: Order,
        count: usize,
        is_left_out: impl Fn(&Key) -> bool,
    ) -> Option<Vec<Key>> {
        let from = self.keys.partition_point(|key| key.as_bytes() < range.start());
        let to = range
            .end()
            .map_or(self.keys.len(), |end| self.keys.partition_point(|key| key.as_bytes() < end));
        let inside = self.keys.get(from..to.max(from))?;
        let stays = |key: &&Key| !is_left_out(key);
        let keys: Vec<Key> = match order {
            Order::Ascending => inside.iter().filter(stays).take(count).cloned().collect(),
            Order::Descending => inside.iter().rev().filter(stays).take(count).cloned().collect(),
        };
        let begins = match order {
            Order::Ascending => range.start() >= self.covers.start(),
            Order::Descending => ends_before(range, &self.covers),
        };
        let is_enough = keys.len() == count || range.is_within(&self.covers);
        (begins && is_enough).then_some(keys)
    }

    /// Whether it is not too old to go on with.
    fn is_good(&self, now: Timestamp) -> bool {
        let since = |at: Timestamp, now: Timestamp| Duration::try_from(now.duration_since(at)).ok();
        // A clock that was set back says nothing.
        let (Some(took), Some(age)) = (since(self.began.at, self.ended), since(self.ended, now))
        else {
            return false;
        };
        age < took.saturating_mul(AGE_TIMES).clamp(AGE_MAX, AGE_LIMIT)
    }

    fn bytes(&self) -> usize {
        self.keys.iter().map(bytes).sum()
    }
}

/// Whether a range ends no later than another.
fn ends_before(range: &KeyRange, other: &KeyRange) -> bool {
    match (range.end(), other.end()) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(end), Some(other)) => end <= other,
    }
}

fn bytes(key: &Key) -> usize {
    key.as_bytes().len() + size_of::<Key>()
}

pub(super) struct Windows(Mutex<Bounded<Listed, Window>>);

impl Default for Windows {
    fn default() -> Self {
        Self(Mutex::new(Bounded::new(WINDOWS_MAX, WINDOWS_BYTES_MAX)))
    }
}

impl Windows {
    /// The window of a listing, if it is not old.
    pub fn get(&self, listed: &Listed, now: Timestamp) -> Option<Window> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.get(listed).filter(|window| window.is_good(now)).cloned()
    }

    /// Remembers a window instead of an earlier one.
    pub fn keep(&self, listed: Listed, window: Window) {
        let bytes = window.bytes();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(listed, window, bytes);
    }
}

#[cfg(test)]
mod tests {
    use keyward_key::Prefix;

    use super::*;

    const BEGAN: Moment = Moment { at: Timestamp::UNIX_EPOCH, change: 0 };

    fn key(n: usize) -> Key {
        Prefix::from_segments(["a", "u", "n"]).child(&format!("{n:03}")).to_key().unwrap()
    }

    fn numbers(keys: &[Key]) -> Vec<usize> {
        let last = |key: &Key| key.segments().last().unwrap().parse().unwrap();
        keys.iter().map(last).collect()
    }

    /// A window over a hundred keys that come in no order, of which few are kept.
    fn gathered(range: &KeyRange, order: Order, keys_max: usize) -> Window {
        let mut gathering = Gathering { keys_max, ..Gathering::new(range, order, BEGAN) };
        (0..100).for_each(|n| gathering.add(key(n * 37 % 100)));
        gathering.finish(BEGAN.at)
    }

    #[test]
    fn a_window_that_took_long_is_used_for_longer() {
        let seconds =
            |seconds: i64| Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(seconds);
        let all = KeyRange::under(&Prefix::from_segments(["a", "u", "n"]));
        for (ended, good_until) in [(0, 10), (1, 11), (60, 660), (7_200, 10_800)] {
            let gathering = Gathering::new(&all, Order::Ascending, BEGAN);
            let window = gathering.finish(seconds(ended));
            assert!(window.is_good(seconds(ended)) && window.is_good(seconds(good_until - 1)));
            assert!(!window.is_good(seconds(good_until)), "{ended}");
            assert!(!window.is_good(seconds(ended - 1)), "the clock was set back");
        }
    }

    #[test]
    fn a_window_has_the_nearest_keys_and_knows_how_far_it_reaches() {
        let all = KeyRange::under(&Prefix::from_segments(["a", "u", "n"]));
        for order in [Order::Ascending, Order::Descending] {
            let whole = gathered(&all, order, 1_000);
            assert_eq!(whole.first(&all, order, 1_000, |_| false).unwrap().len(), 100);
            let part = gathered(&all, order, 40);
            let expected: Vec<usize> = match order {
                Order::Ascending => (0..10).collect(),
                Order::Descending => (90..100).rev().collect(),
            };
            let found = part.first(&all, order, 10, |_| false).unwrap();
            assert_eq!(numbers(&found), expected);
            // It has not all of them, so it does not say that there are no more.
            assert_eq!(part.first(&all, order, 100, |_| false), None);
            let found = part.first(&all, order, 9, |it| *it == key(expected[3])).unwrap();
            assert_eq!(found.len(), 9);
            assert!(!numbers(&found).contains(&expected[3]));
        }
    }

    #[test]
    fn a_window_says_nothing_about_what_lies_before_it() {
        let all = KeyRange::under(&Prefix::from_segments(["a", "u", "n"]));
        let later = all.after(&key(50));
        let window = gathered(&later, Order::Ascending, 1_000);
        assert_eq!(window.first(&all, Order::Ascending, 5, |_| false), None);
        let found = window.first(&later, Order::Ascending, 5, |_| false).unwrap();
        assert_eq!(numbers(&found), [51, 52, 53, 54, 55]);
        let end = all.after(&key(98));
        assert_eq!(numbers(&window.first(&end, Order::Ascending, 5, |_| false).unwrap()), [99]);
        let earlier = all.before(&key(50));
        let window = gathered(&earlier, Order::Descending, 1_000);
        assert_eq!(window.first(&all, Order::Descending, 5, |_| false), None);
        let found = window.first(&earlier, Order::Descending, 3, |_| false).unwrap();
        assert_eq!(numbers(&found), [49, 48, 47]);
    }
}
