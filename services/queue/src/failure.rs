use std::time::Duration;

/// Why a handler could not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub(crate) reason: String,
    pub(crate) is_final: bool,
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    /// A failure after which the message is tried again, as often as the queue's options say.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_final: false, retry_after: None }
    }

    /// A failure that trying again cannot mend: the message becomes a dead letter at once.
    pub fn permanent(reason: impl Into<String>) -> Self {
        Self { is_final: true, ..Self::new(reason) }
    }

    /// The same, to be tried again after this time rather than the queue's own.
    #[must_use]
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.retry_after = Some(time);
        self
    }

    /// What went wrong.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl<T: std::fmt::Display> From<T> for Failure {
    fn from(reason: T) -> Self {
        Self::new(reason.to_string())
    }
}
