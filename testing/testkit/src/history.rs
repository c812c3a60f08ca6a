//! Whether what several clients saw could have happened one after the other.
//!
//! A history is linearizable if each of its operations can be given a moment between its call and its
//! return such that, done in the order of these moments, every operation has the result it had. This
//! looks for such an order, as Wing and Gong do, and remembers which sets of operations, done, led to
//! which state, as Lowe does: no such pair is tried twice.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// What one thing (a key, a lock) does, done by one client at a time.
pub trait Model {
    /// What it is like.
    type State: Clone + Eq + Hash + Debug;
    /// What is done to it, and what came of it.
    type Operation: Debug;

    /// What it is like at first.
    fn initial(&self) -> Self::State;

    /// What it is like after an operation, or nothing if the operation could not have had its result.
    fn apply(&self, state: &Self::State, operation: &Self::Operation) -> Option<Self::State>;
}

/// An operation, and when it was under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timed<O> {
    /// When it was called, on a clock that all clients share.
    pub called: u64,
    /// When it returned; `None` if nobody knows whether it was done: it may have been, at any time
    /// since it was called, or not.
    pub returned: Option<u64>,
    /// The operation.
    pub operation: O,
}

/// Why a history cannot have happened one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotLinearizable {
    /// How many of the operations could be put in an order at most.
    pub ordered: usize,
    /// The operations that were then under way, none of which could be next.
    pub stuck_at: Vec<String>,
}

/// Checks one history.
///
/// ```
/// use keyward_testkit::{Model, Timed, linearize};
///
/// /// A counter: each operation adds one, and tells the sum.
/// struct Counter;
///
/// impl Model for Counter {
///     type State = u32;
///     type Operation = u32;
///     fn initial(&self) -> u32 {
///         0
///     }
///     fn apply(&self, sum: &u32, told: &u32) -> Option<u32> {
///         (sum + 1 == *told).then_some(*told)
///     }
/// }
///
/// let add = |called, returned, operation| Timed { called, returned: Some(returned), operation };
/// assert!(linearize(&Counter, &[add(0, 9, 2), add(1, 5, 1)]).is_ok());
/// // The second began when the first was done.
/// assert!(linearize(&Counter, &[add(0, 4, 2), add(5, 9, 1)]).is_err());
/// ```
pub fn linearize<M: Model>(
    model: &M,
    history: &[Timed<M::Operation>],
) -> Result<(), NotLinearizable> {
    let mut search = Search::new(model, history);
    search.run()
}

/// A set of operations, as bits.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Done(Vec<u64>);

impl Done {
    fn none_of(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn has(&self, at: usize) -> bool {
        self.0[at / 64] & (1 << (at % 64)) != 0
    }

    fn flip(&mut self, at: usize) {
        self.0[at / 64] ^= 1 << (at % 64);
    }
}

struct Search<'h, M: Model> {
    model: &'h M,
    /// In the order of their calls.
    history: Vec<&'h Timed<M::Operation>>,
    done: Done,
    seen: HashSet<(Done, M::State)>,
    /// Those done, in order, each with the state before it.
    path: Vec<(usize, M::State)>,
}

impl<'h, M: Model> Search<'h, M> {
    fn new(model: &'h M, history: &'h [Timed<M::Operation>]) -> Self {
        let mut history: Vec<_> = history.iter().collect();
        history.sort_by_key(|timed| timed.called);
        let done = Done::none_of(history.len());
        Self { model, history, done, seen: HashSet::new(), path: Vec::new() }
    }

    fn run(&mut self) -> Result<(), NotLinearizable> {
        let mut state = self.model.initial();
        let mut from = 0;
        let mut worst = NotLinearizable { ordered: 0, stuck_at: self.under_way() };
        loop {
            if self.is_over() {
                return Ok(());
            }
            if let Some((at, next)) = self.next(&state, from) {
                self.path.push((at, std::mem::replace(&mut state, next)));
                from = 0;
                continue;
            }
            if self.path.len() > worst.ordered {
                let stuck_at = self.under_way();
                worst = NotLinearizable { ordered: self.path.len(), stuck_at };
            }
            let Some((at, before)) = self.path.pop() else {
                return Err(worst);
            };
            self.done.flip(at);
            (state, from) = (before, at + 1);
        }
    }

    /// Whether everything that certainly happened is done.
    fn is_over(&self) -> bool {
        let undone =
            |(at, timed): (usize, &&Timed<_>)| timed.returned.is_some() && !self.done.has(at);
        !self.history.iter().enumerate().any(undone)
    }

    /// Does the first operation, at `from` or later, that may come now and lead somewhere new.
    fn next(&mut self, state: &M::State, from: usize) -> Option<(usize, M::State)> {
        let end = self.first_return();
        for at in from..self.history.len() {
            let timed = self.history[at];
            if timed.called > end {
                break;
            }
            if self.done.has(at) {
                continue;
            }
            let Some(next) = self.model.apply(state, &timed.operation) else { continue };
            self.done.flip(at);
            if self.seen.insert((self.done.clone(), next.clone())) {
                return Some((at, next));
            }
            self.done.flip(at);
        }
        None
    }

    /// When the first of those not done returned: whatever was called later comes after it.
    fn first_return(&self) -> u64 {
        let undone = self.history.iter().enumerate().filter(|(at, _)| !self.done.has(*at));
        undone.filter_map(|(_, timed)| timed.returned).min().unwrap_or(u64::MAX)
    }

    fn under_way(&self) -> Vec<String> {
        let end = self.first_return();
        let undone = self.history.iter().enumerate().filter(|(at, _)| !self.done.has(*at));
        let now = undone.filter(|(_, timed)| timed.called <= end);
        now.map(|(_, timed)| format!("{timed:?}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value that is read and written.
    struct Register;

    #[derive(Debug, Clone, Copy)]
    enum Op {
        Write(u8),
        Read(u8),
    }

    impl Model for Register {
        type State = u8;
        type Operation = Op;

        fn initial(&self) -> u8 {
            0
        }

        fn apply(&self, state: &u8, operation: &Op) -> Option<u8> {
            match *operation {
                Op::Write(value) => Some(value),
                Op::Read(value) => (value == *state).then_some(value),
            }
        }
    }

    fn op(called: u64, returned: impl Into<Option<u64>>, operation: Op) -> Timed<Op> {
        Timed { called, returned: returned.into(), operation }
    }

    #[test]
    fn operations_at_the_same_time_may_have_any_order() {
        for read in [0, 1, 2] {
            let history =
                [op(0, 10, Op::Write(1)), op(1, 9, Op::Write(2)), op(2, 8, Op::Read(read))];
            assert_eq!(linearize(&Register, &history), Ok(()), "{read}");
        }
        let history = [op(0, 10, Op::Write(1)), op(2, 8, Op::Read(3))];
        assert!(linearize(&Register, &history).is_err());
    }

    #[test]
    fn what_was_seen_cannot_be_unseen() {
        let history = [op(0, 100, Op::Write(1)), op(1, 2, Op::Read(1)), op(3, 4, Op::Read(0))];
        let found = linearize(&Register, &history).unwrap_err();
        assert_eq!(found.ordered, 2, "{found:?}");
        assert_eq!(found.stuck_at.len(), 1, "{found:?}");
    }

    #[test]
    fn what_was_not_answered_may_have_happened_or_not() {
        let lost = op(0, None, Op::Write(1));
        for seen in [0, 1] {
            assert!(linearize(&Register, &[lost.clone(), op(5, 6, Op::Read(seen))]).is_ok());
        }
        let late = [lost.clone(), op(1, 2, Op::Read(0)), op(3, 4, Op::Read(1))];
        assert!(linearize(&Register, &late).is_ok());
        let gone = [lost, op(1, 2, Op::Read(1)), op(3, 4, Op::Read(0))];
        assert!(linearize(&Register, &gone).is_err());
    }

    #[test]
    fn long_histories_are_checked_quickly() {
        // Eight clients, always in each other's way.
        let mut history = Vec::new();
        for n in 0..1_000_u64 {
            let client = n % 8;
            let called = n / 8 * 10 + client;
            let value = (n / 8 % 200) as u8;
            let operation = if client == 0 { Op::Write(value) } else { Op::Read(value) };
            history.push(op(called, called + 9, operation));
        }
        assert_eq!(linearize(&Register, &history), Ok(()));
        history.push(op(5_000, 5_001, Op::Read(255)));
        assert!(linearize(&Register, &history).is_err());
    }
}
