use std::fmt;
use std::time::Duration;

/// The response times of one kind of request, and how many of them failed.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    times: Vec<Duration>,
    failures: Vec<String>,
}

impl Latencies {
    /// Records a request that was answered as expected.
    pub fn answered(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// Records a request that failed. Its time counts too: waiting for a timeout is not fast.
    pub fn failed(&mut self, time: Duration, reason: String) {
        self.times.push(time);
        self.failures.push(reason);
    }

    /// The time that `percent` of the requests did not exceed; zero without requests.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.times.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// The number of requests.
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// Why requests failed, in the order they did.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |percent| self.percentile(percent).as_secs_f64() * 1_000.0;
        let (count, failed) = (self.count(), self.failures.len());
        let (half, most, all) = (millis(50), millis(99), millis(100));
        write!(f, "{count} (p50 {half:.1} ms, p99 {most:.1} ms, max {all:.1} ms, {failed} failed)")
    }
}

/// What was measured during one attack. Displayed as one line.
#[derive(Debug, Clone)]
pub struct Figures {
    /// The name of the attack.
    pub attack: &'static str,
    /// Another user's gets during the attack.
    pub gets: Latencies,
    /// Requests for `/healthz` during the attack.
    pub health: Latencies,
    /// The most memory that the server had (`VmRSS`).
    pub resident_bytes_max: u64,
    /// How long after the attack everything was normal again, unless it took too long.
    pub normal_after: Option<Duration>,
    /// Counts of the attack's own.
    pub notes: Vec<(&'static str, u64)>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attack, gets, health, .. } = self;
        let mebibytes = self.resident_bytes_max / (1024 * 1024);
        write!(f, "attack {attack}: gets {gets}; health {health}; memory {mebibytes} MiB; ")?;
        match self.normal_after {
            Some(time) => write!(f, "normal after {:.2} s", time.as_secs_f64())?,
            None => f.write_str("not normal again")?,
        }
        self.notes.iter().try_for_each(|(name, count)| write!(f, "; {name} {count}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(99), Duration::ZERO);
        for millis in (1..=200).rev() {
            latencies.answered(Duration::from_millis(millis));
        }
        assert_eq!(latencies.percentile(50), Duration::from_millis(100));
        assert_eq!(latencies.percentile(99), Duration::from_millis(198));
        assert_eq!(latencies.percentile(100), Duration::from_millis(200));
    }

    #[test]
    fn a_failure_counts_with_the_time_that_it_took() {
        let mut latencies = Latencies::default();
        latencies.answered(Duration::from_millis(1));
        latencies.failed(Duration::from_secs(10), "timeout".to_owned());
        assert_eq!(latencies.percentile(99), Duration::from_secs(10));
        assert_eq!(latencies.failures(), ["timeout"]);
    }
}
