use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::Clock;

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
