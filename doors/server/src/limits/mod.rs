//! How much each caller may ask for.

mod quota;
mod rate;

use std::net::IpAddr;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use keyward::Code;

pub use quota::Quota;
pub(crate) use quota::Usage;
pub use rate::Rate;
use rate::{Buckets, Taken};

use crate::auth::Tenant;
use crate::problem::Problem;
use crate::shares::network;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// How often callers may ask. A server without credentials asks nobody to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Each tenant: a user, or a key that is nobody's.
    pub tenant: Option<Rate>,
    /// Each address from which requests come without a valid credential.
    pub stranger: Option<Rate>,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            tenant: Some(Rate { per_second: 1_000, burst: 2_000 }),
            stranger: Some(Rate { per_second: 10, burst: 100 }),
        }
    }
}

/// Who has asked how often of late. Tenants and strangers are counted apart, so that no number of
/// strangers makes a tenant's count be forgotten.
#[derive(Debug)]
pub(crate) struct Throttle {
    tenants: Option<Buckets<Tenant>>,
    strangers: Option<Buckets<IpAddr>>,
}

impl Throttle {
    pub fn new(rates: &Rates) -> Self {
        Self {
            tenants: rates.tenant.map(Buckets::new),
            strangers: rates.stranger.map(Buckets::new),
        }
    }

    /// Counts a request of a tenant.
    pub fn tenant(&self, tenant: &Tenant, now: Timestamp) -> Option<Standing> {
        let buckets = self.tenants.as_ref()?;
        Some(Standing { policy: "tenant", rate: buckets.rate(), taken: buckets.take(tenant, now) })
    }

    /// Whether an address has sent as many requests without a valid credential as it may.
    pub fn stranger_is_over(&self, address: IpAddr, now: Timestamp) -> bool {
        let over = |buckets: &Buckets<IpAddr>| buckets.is_empty(&network(address), now);
        self.strangers.as_ref().is_some_and(over)
    }

    /// Counts a request without a valid credential.
    pub fn stranger(&self, address: IpAddr, now: Timestamp) -> Option<Standing> {
        let buckets = self.strangers.as_ref()?;
        let taken = buckets.take(&network(address), now);
        Some(Standing { policy: "address", rate: buckets.rate(), taken })
    }
}

/// How a caller stands after a request was counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    policy: &'static str,
    rate: Rate,
    taken: Taken,
}

impl Standing {
    /// The same for a request that was one too many when it came.
    #[must_use]
    pub fn refused(mut self) -> Self {
        self.taken.granted = false;
        self.taken.retry_seconds = self.taken.retry_seconds.max(1);
        self
    }

    /// Refuses a request that is one too many.
    pub fn check(&self) -> Result<(), Problem> {
        if self.taken.granted {
            return Ok(());
        }
        let seconds = self.taken.retry_seconds;
        Err(Problem::new(Code::RateLimited, "too many requests came in too short a time")
            .hint(format!("Try again after {seconds} s; nothing was done."))
            .retryable()
            .retry_after(Duration::from_secs(seconds)))
    }

    /// Tells the caller, as draft-ietf-httpapi-ratelimit-headers-10 says: so many requests in so
    /// many seconds; so many are left, and in so many seconds all of them are there again.
    pub fn tell(&self, headers: &mut HeaderMap) {
        let Self { policy, rate, taken } = self;
        let told = [
            (RATE_LIMIT_POLICY, format!("\"{policy}\";q={};w={}", rate.burst, rate.window())),
            (RATE_LIMIT, format!("\"{policy}\";r={};t={}", taken.remaining, taken.full_seconds)),
        ];
        for (name, text) in told {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_stranger() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.2"), of("10.0.0.1"));
    }
}
