use std::time::Duration;

use crate::Places;
use crate::row::boundary;

/// How a queue is worked on. Processes that work on one queue should agree on all but the holder;
/// where they do not, each row goes by what the process says that has it in hand.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How long a claimed message is left alone without a sign of life from its worker.
    pub lease: Duration,
    /// How often, and how late, a message that failed is tried again.
    pub retry: Retry,
    /// How long a completed message whose id was given is remembered, so that enqueuing it again
    /// is told as a duplicate. Others are remembered for a lease.
    pub remembered: Duration,
    /// Who works here, for people: a name, a machine, a process, in at most
    /// [`Options::HOLDER_BYTES_MAX`] bytes.
    pub holder: String,
    /// Where the rows are; `None` is [`Places::of`] the queue's name.
    pub places: Option<Places>,
    /// Makes every choice repeatable, for tests.
    pub seed: Option<u64>,
}

impl Options {
    /// The most bytes that the name of a holder has: it stands in every row that is claimed, and rows
    /// have room for it even where each of its characters is escaped.
    pub const HOLDER_BYTES_MAX: usize = 128;

    /// So much of the name of a holder as fits.
    pub(crate) fn shortened_holder(name: &str) -> String {
        name[..boundary(name, Self::HOLDER_BYTES_MAX)].to_owned()
    }
}

impl Default for Options {
    /// Leases of 30 seconds, three attempts, ten minutes to remember.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            retry: Retry::default(),
            remembered: Duration::from_secs(600),
            holder: format!("process {}", std::process::id()),
            places: None,
            seed: None,
        }
    }
}

/// How often, and how late, a message that failed is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// A message whose `retryCount` reaches this is a dead letter.
    pub attempts_max: u32,
    /// The wait after the first failure; it doubles with each further one.
    pub backoff_min: Duration,
    /// The longest wait.
    pub backoff_max: Duration,
}

impl Default for Retry {
    /// Three attempts, one second doubling to five minutes.
    fn default() -> Self {
        Self {
            attempts_max: 3,
            backoff_min: Duration::from_secs(1),
            backoff_max: Duration::from_secs(300),
        }
    }
}

impl Retry {
    /// The wait after so many failures: doubled each time, of which up to a quarter is left to
    /// chance, so that what failed together does not come back together.
    pub(crate) fn backoff(&self, retry_count: u32, chance: f64) -> Duration {
        let doubled = 2_u32.saturating_pow(retry_count.saturating_sub(1));
        let whole = self.backoff_min.saturating_mul(doubled).min(self.backoff_max);
        whole.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_longest_with_some_of_it_left_to_chance() {
        let retry = Retry::default();
        let seconds = |retries| retry.backoff(retries, 0.0).as_secs();
        assert_eq!([1, 2, 3, 9, 10, 4_000_000_000].map(seconds), [1, 2, 4, 256, 300, 300]);
        assert_eq!(retry.backoff(3, 1.0), Duration::from_secs(3));
    }
}
