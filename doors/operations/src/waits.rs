//! Requests that wait for others: for how long, how many at a time, and not beyond the server's stop.

use std::time::Duration;

use keyward::Code;

use crate::config::OperationLimits;
use crate::identity::Identity;
use crate::lifecycle::Lifecycle;
use crate::problem::{Problem, Result};
use crate::shares::{Full, Holder, Place, Shares};

/// The longest that a request waits: what stands between client and server may give up soon after.
const TIME_MAX: Duration = Duration::from_secs(25);

/// The bounds of requests that wait.
#[derive(Debug)]
pub struct Waits {
    time_max: Duration,
    places: Shares,
}

impl Waits {
    /// At most half of the requests that are worked on may wait, half of these for one credential, and each
    /// shorter than an answer may take.
    pub fn new(limits: &OperationLimits) -> Self {
        Self {
            time_max: (limits.answer_time_max * 5 / 6).min(TIME_MAX),
            places: Shares::halved((limits.requests_max / 2).max(1)),
        }
    }

    /// How long a request waits that asks for some seconds.
    pub fn bounded(&self, seconds: f64) -> Result<Duration> {
        let asked = Duration::try_from_secs_f64(seconds).map_err(|_| {
            Problem::invalid(format!("a time to wait is a number of seconds, not {seconds}"))
        })?;
        Ok(self.at_most(asked))
    }

    /// How long a request waits that asks for some time.
    pub fn at_most(&self, asked: Duration) -> Duration {
        asked.min(self.time_max)
    }

    /// Takes one of the places of those who wait.
    pub fn place(&self, who: &Identity) -> Result<Place> {
        self.places.take(&Holder::of(who)).map_err(|full| {
            let detail = match full {
                Full::All => "too many requests are already waiting",
                Full::Part => "too many requests of this credential are already waiting",
            };
            Problem::new(Code::Overloaded, detail)
                .hint("Try again in a moment, or without waiting; nothing was done.")
                .retryable()
                .retry_after(Duration::from_secs(1))
        })
    }

    /// Does something that waits for up to some time. A stop of the server ends it at once.
    pub async fn during<T>(
        &self,
        who: &Identity,
        wait: Duration,
        lifecycle: &Lifecycle,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let _place = match wait.is_zero() {
            true => None,
            false => Some(self.place(who)?),
        };
        tokio::select! {
            biased;
            done = work => done,
            () = lifecycle.stopping() => {
                Err(Problem::new(Code::Stopping, "the server is about to stop")
                    .hint("Ask again, at another server of the same store if there is one.")
                    .retryable())
            }
        }
    }
}
