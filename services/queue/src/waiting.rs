//! Claims that wait for messages.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::wake::{Signal, Wake};
use crate::{Claimant, Claims, Queue, Result};

/// The wait between two looks where nothing tells of messages: it doubles.
const POLL_MIN: Duration = Duration::from_millis(50);
const POLL_MAX: Duration = Duration::from_secs(1);
/// The longest wait between two looks where messages are told of.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// The longest wait before looking again where others took what was seen.
const OUTRUN_MAX_MS: usize = 10;

impl Queue {
    /// Claims as [`Queue::claim_as`] does; where there is nothing to claim, waits until there is, or
    /// until `patience` ends. While it waits nothing is held: dropped then, it has claimed nothing.
    pub async fn claim_in_time(
        &self,
        claimant: &Claimant,
        max: usize,
        patience: impl Future<Output = ()>,
    ) -> Result<Claims> {
        let mut patience = std::pin::pin!(patience);
        let mut wake = Wake::new(self);
        let mut pause = POLL_MIN;
        loop {
            let claims = self.claim_as(claimant, max).await?;
            if !claims.attempts.is_empty() {
                return Ok(claims);
            }
            let mut wait = match (claims.contended, wake.is_watching()) {
                (true, _) => {
                    Duration::from_millis(1 + self.inner.entropy.below(OUTRUN_MAX_MS) as u64)
                }
                (false, true) => LOOK_MAX,
                (false, false) => pause,
            };
            pause = (pause * 2).min(POLL_MAX);
            if let Some(due) = claims.next_due {
                wait = wait.min(self.time_until(due));
            }
            let mut look_at = Instant::now() + wait;
            loop {
                tokio::select! {
                    biased;
                    () = patience.as_mut() => return Ok(claims),
                    signal = wake.next() => match signal {
                        Signal::Look => break,
                        Signal::LookAt(due) => {
                            look_at = look_at.min(Instant::now() + self.time_until(due));
                        }
                        Signal::Gone(_) => {}
                    },
                    () = tokio::time::sleep_until(look_at) => break,
                }
            }
        }
    }

    /// How long it is until then, by this process's clock.
    pub(crate) fn time_until(&self, due: Timestamp) -> Duration {
        let wait = due.duration_since(self.now().time());
        // The due time is of whole milliseconds, and so is the clock.
        Duration::try_from(wait).unwrap_or_default() + Duration::from_millis(1)
    }
}
