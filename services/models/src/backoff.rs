use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The longest pause that grows by itself.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The longest pause that a provider can ask for.
const ASKED_MAX: Duration = Duration::from_secs(60);

/// How long to wait before something is asked again.
#[derive(Debug)]
pub(crate) struct Backoff {
    pause_min: Duration,
    random: Mutex<fastrand::Rng>,
}

impl Backoff {
    pub fn new(pause_min: Duration, seed: u64) -> Self {
        Self { pause_min, random: Mutex::new(fastrand::Rng::with_seed(seed)) }
    }

    /// The pause after so many attempts: twice the one before, less up to a half by chance, so that
    /// those who failed together do not come back together. A provider that says when it wants to be
    /// asked again is not asked before.
    pub fn pause(&self, attempts: u32, asked: Option<Duration>) -> Duration {
        match asked {
            Some(asked) => (asked.min(ASKED_MAX) + self.shortened(self.pause_min)).min(ASKED_MAX),
            None => {
                let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
                self.shortened(self.pause_min.saturating_mul(doubled).min(PAUSE_MAX))
            }
        }
    }

    fn shortened(&self, pause: Duration) -> Duration {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        pause.mul_f64(0.5 + random.f64() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 11;

    #[test]
    fn pauses_double_up_to_a_limit_and_differ_by_chance() {
        let backoff = Backoff::new(Duration::from_millis(500), SEED);
        for (attempts, most_ms) in [(1, 500), (2, 1_000), (4, 4_000), (8, 30_000), (99, 30_000)] {
            let pauses: Vec<_> = (0..100).map(|_| backoff.pause(attempts, None)).collect();
            let most = Duration::from_millis(most_ms);
            assert!(pauses.iter().all(|&pause| pause >= most / 2 && pause <= most), "seed {SEED}");
            assert!(pauses.iter().any(|pause| *pause != pauses[0]), "seed {SEED}");
        }
    }

    #[test]
    fn a_provider_is_not_asked_before_it_wants_to_be_and_cannot_ask_for_hours() {
        let backoff = Backoff::new(Duration::from_millis(500), SEED);
        let pause = backoff.pause(1, Some(Duration::from_secs(7)));
        assert!(pause > Duration::from_secs(7) && pause <= Duration::from_millis(7_500));
        assert_eq!(backoff.pause(1, Some(Duration::from_secs(7_200))), ASKED_MAX);
        assert_eq!(backoff.pause(1, Some(Duration::MAX)), ASKED_MAX);
    }
}
