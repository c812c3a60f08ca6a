use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;

/// A call to an engine that may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// `get_many`.
    Get,
    /// `scan`.
    Scan,
    /// `commit`.
    Commit,
}

/// Before or after a call took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum When {
    /// The engine does not hear of the call.
    Before,
    /// The engine has done it, and the answer is on its way.
    After,
}

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fault {
    /// Nothing: the call goes through.
    #[default]
    None,
    /// The call fails as [`Unavailable`](keyward_engine::ErrorKind::Unavailable), and nothing was
    /// done.
    Fail,
    /// A commit is answered [`OutcomeUnknown`](keyward_engine::ErrorKind::OutcomeUnknown): `Before`,
    /// it never arrived; `After`, it did. A read just fails.
    Unanswered(When),
    /// A commit is answered [`OutcomeUnknown`](keyward_engine::ErrorKind::OutcomeUnknown) at once, and
    /// lands after this time by tokio's clock, whatever became of its process since. With
    /// [`Duration::MAX`] it lands when [`land`](crate::FaultyEngine::land) says so. A read just fails.
    Late(Duration),
    /// The call waits by tokio's clock, before or after it takes effect.
    Delay(When, Duration),
    /// The call lets other tasks run so many times, before or after it takes effect.
    Yield(When, u8),
    /// The handle is dead from here on, as after a crash of its process: every call fails as
    /// [`Unavailable`](keyward_engine::ErrorKind::Unavailable) until
    /// [`revive`](crate::FaultyEngine::revive). A commit that took effect before the crash is
    /// itself answered [`OutcomeUnknown`](keyward_engine::ErrorKind::OutcomeUnknown), so that no
    /// answer is ever untrue.
    Crash(When),
}

/// How often each fault happens, from 0 (never) to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    /// [`Fault::Fail`].
    pub fail: f64,
    /// [`Fault::Unanswered`], half of them before and half after.
    pub unanswered: f64,
    /// [`Fault::Delay`] and [`Fault::Yield`], half and half.
    pub delay: f64,
    /// The longest [`Fault::Delay`].
    pub delay_max: Duration,
    /// [`Fault::Crash`], half of them before and half after.
    pub crash: f64,
    /// [`Fault::Late`].
    pub late: f64,
    /// The longest time by which a commit is late.
    pub late_max: Duration,
}

impl Rates {
    /// Something of everything but late commits: a tenth of the calls goes wrong, and as many wait.
    pub fn some() -> Self {
        Self {
            fail: 0.04,
            unanswered: 0.04,
            delay: 0.1,
            delay_max: Duration::from_secs(1),
            crash: 0.02,
            late: 0.0,
            late_max: Duration::ZERO,
        }
    }
}

/// What happens to which call. Calls are counted from zero.
#[derive(Debug, Clone)]
pub struct Faults(Plan);

#[derive(Debug, Clone)]
enum Plan {
    Script(BTreeMap<u64, Fault>),
    Seeded { rng: Rng, rates: Rates },
}

impl Faults {
    /// Every call goes through; they are only counted.
    pub fn none() -> Self {
        Self::script([])
    }

    /// A crash at one call. A test runs a protocol once without faults to learn the number of its
    /// calls, and then again with a crash before and after each.
    pub fn crash_at(call: u64, when: When) -> Self {
        Self::script([(call, Fault::Crash(when))])
    }

    /// These faults at these calls.
    pub fn script(faults: impl IntoIterator<Item = (u64, Fault)>) -> Self {
        Self(Plan::Script(faults.into_iter().collect()))
    }

    /// Faults at random; the same for the same seed.
    pub fn seeded(seed: u64, rates: Rates) -> Self {
        Self(Plan::Seeded { rng: Rng::with_seed(seed), rates })
    }

    /// What happens to the next call.
    pub(crate) fn next(&mut self, call: u64) -> Fault {
        match &mut self.0 {
            Plan::Script(faults) => faults.get(&call).copied().unwrap_or_default(),
            // Each call takes one number of the seed's, so that what one fault needs does not
            // shift those after it.
            Plan::Seeded { rng, rates } => rates.draw(&mut Rng::with_seed(rng.u64(..))),
        }
    }
}

impl Rates {
    fn draw(&self, rng: &mut Rng) -> Fault {
        let mut left = rng.f64();
        let mut happens = |rate: f64| {
            let happens = (0.0..rate).contains(&left);
            left -= rate;
            happens
        };
        let (fail, unanswered) = (happens(self.fail), happens(self.unanswered));
        let (delay, crash) = (happens(self.delay), happens(self.crash));
        let late = happens(self.late);
        let when = if rng.bool() { When::Before } else { When::After };
        if fail {
            Fault::Fail
        } else if unanswered {
            Fault::Unanswered(when)
        } else if crash {
            Fault::Crash(when)
        } else if late {
            Fault::Late(up_to(rng, self.late_max))
        } else if delay && rng.bool() {
            Fault::Delay(when, up_to(rng, self.delay_max))
        } else if delay {
            Fault::Yield(when, rng.u8(1..=8))
        } else {
            Fault::None
        }
    }
}

fn up_to(rng: &mut Rng, most: Duration) -> Duration {
    let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(rng.u64(..=most))
}
