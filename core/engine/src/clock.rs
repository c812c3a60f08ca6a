use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// Where the time comes from. Passed in, so that tests own it.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The moment it is now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock, in whole microseconds: as exact as [the text of a moment](crate::moment), so that a
/// moment equals itself after it was stored.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment_text;

    #[test]
    fn a_moment_of_the_machines_clock_comes_back_from_its_text() {
        let now = SystemClock.now();
        assert_eq!(moment_text(now).parse::<Timestamp>().unwrap(), now);
    }
}
