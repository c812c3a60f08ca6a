use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use keyward_engine::Clock;
use tokio::time::Instant;

/// A clock that stands still until a test moves it. Clones show the same time.
///
/// ```
/// use std::time::Duration;
/// use keyward_engine::Clock;
/// use keyward_testkit::TestClock;
///
/// let clock = TestClock::new();
/// let engines_clock = clock.clone();
/// clock.advance(Duration::from_millis(1_500));
/// assert_eq!(engines_clock.now().to_string(), "2026-01-01T00:00:01.5Z");
/// ```
#[derive(Debug, Clone)]
pub struct TestClock {
    now: Arc<Mutex<Timestamp>>,
}

impl TestClock {
    /// What every test clock shows at first: the beginning of 2026.
    pub const START: Timestamp = Timestamp::constant(1_767_225_600, 0);

    /// A clock that shows [`TestClock::START`].
    pub fn new() -> Self {
        Self { now: Arc::new(Mutex::new(Self::START)) }
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.change(|now| now.saturating_add(by).unwrap_or(Timestamp::MAX));
    }

    /// Lets time pass up to a moment; a moment that has passed changes nothing.
    pub fn advance_to(&self, moment: Timestamp) {
        self.change(|now| now.max(moment));
    }

    fn change(&self, change: impl FnOnce(Timestamp) -> Timestamp) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = change(*now);
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A clock that goes with tokio's: on a runtime whose time is paused, the time of the simulation. A
/// process with a clock of its own may be ahead of the others or behind.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?
/// #     .block_on(async {
/// use std::time::Duration;
/// use jiff::SignedDuration;
/// use keyward_engine::Clock;
/// use keyward_testkit::VirtualClock;
///
/// let clock = VirtualClock::new();
/// let ahead = clock.skewed(SignedDuration::from_mins(3));
/// tokio::time::sleep(Duration::from_secs(5)).await;
/// assert_eq!(clock.now().to_string(), "2026-01-01T00:00:05Z");
/// assert_eq!(ahead.now().to_string(), "2026-01-01T00:03:05Z");
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct VirtualClock {
    start: Instant,
    skew: SignedDuration,
}

impl VirtualClock {
    /// A clock that shows [`TestClock::START`] now. Called inside a runtime.
    #[expect(clippy::new_without_default, reason = "it reads tokio's clock")]
    pub fn new() -> Self {
        Self { start: Instant::now(), skew: SignedDuration::ZERO }
    }

    /// The same clock, as a process shows it that is ahead by so much, or behind.
    #[must_use]
    pub fn skewed(self, by: SignedDuration) -> Self {
        Self { skew: self.skew + by, ..self }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let true_time = TestClock::START.saturating_add(self.start.elapsed());
        let shown = true_time.and_then(|time| time.saturating_add(self.skew));
        shown.unwrap_or(Timestamp::MAX)
    }
}
