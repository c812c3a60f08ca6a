//! What goes wrong in a run.

use std::time::Duration;

use fastrand::Rng;
use jiff::SignedDuration;
use keyward_testkit::Rates;

#[derive(Debug, Clone)]
pub struct Weather {
    pub nodes: usize,
    /// Only clocks are wrong, and calls late.
    pub is_calm: bool,
    pub rates: Rates,
}

impl Weather {
    /// The longest time by which a commit lands late.
    pub const LATE_MAX: Duration = Duration::from_secs(20);

    pub fn new(rng: &mut Rng) -> Self {
        let is_calm = rng.u8(..4) == 0;
        let stormy = |rate: f64| if is_calm { 0.0 } else { rate };
        Self {
            nodes: rng.usize(2..=4),
            is_calm,
            rates: Rates {
                fail: stormy(0.05),
                unanswered: stormy(0.05),
                delay: 0.4,
                delay_max: Duration::from_secs(1),
                crash: stormy(0.005),
                late: stormy(0.02),
                late_max: Self::LATE_MAX,
            },
        }
    }

    /// How far a process's clock is off.
    pub fn skew(rng: &mut Rng) -> SignedDuration {
        SignedDuration::from_secs(rng.i64(-300..=300))
    }
}
