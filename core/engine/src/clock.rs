use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// Where the time comes from. Passed in, so that tests own it.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The moment it is now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}
