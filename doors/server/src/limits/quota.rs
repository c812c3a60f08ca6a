//! How much each tenant may write in a day (UTC). Counted in memory, and added up in the control
//! store, below `system:server:usage:{day}:{tenant}`, every few seconds and when the server stops.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use keyward::{Clock, Code, Commit, Expect, Expiry, ExpirySupport, Json, Key, Outcome, Put, Store};

use crate::auth::{Identity, Need, Tenant};
use crate::control::place;
use crate::problem::{Problem, Result};

const USAGE: &str = "usage";
/// How many tenants are counted at a time.
const TENANTS_MAX: usize = 65_536;
/// How long the numbers of a day are kept.
const KEPT: Duration = Duration::from_secs(3 * 24 * 60 * 60);
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// How much a tenant may write in a day (UTC). What is under way, and what other processes have
/// written in the last seconds, may come on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// How many entries or records.
    pub writes_per_day_max: u64,
    /// How many bytes, in the bodies of requests.
    pub bytes_per_day_max: u64,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Amount {
    writes: u64,
    bytes: u64,
}

impl Amount {
    fn and(self, other: Self) -> Self {
        let writes = self.writes.saturating_add(other.writes);
        Self { writes, bytes: self.bytes.saturating_add(other.bytes) }
    }
}

/// What a tenant has written on a day.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    /// What the control store knows of, from all processes.
    stored: Amount,
    /// What it does not know of yet.
    pending: Amount,
}

/// What tenants have written.
#[derive(Debug)]
pub(crate) struct Usage {
    quota: Quota,
    store: Store,
    clock: Arc<dyn Clock>,
    /// By tenant and day, counted from 1970.
    used: Mutex<HashMap<(Tenant, i64), Used>>,
}

impl Usage {
    pub fn new(quota: Quota, store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { quota, store, clock, used: Mutex::default() }
    }

    fn used(&self) -> MutexGuard<'_, HashMap<(Tenant, i64), Used>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what a request writes, from now on until the result is dropped; a tenant who has used
    /// up their quota is refused when the request asks to write.
    pub async fn meter(&self, who: &Identity) -> Result<Meter<'_>> {
        let now = self.clock.now();
        let at = (who.tenant().clone(), day(now));
        let known = self.used().get(&at).copied();
        let used = match known {
            Some(used) => used,
            None => self.load(&at).await?,
        };
        let sum = used.stored.and(used.pending);
        let Quota { writes_per_day_max, bytes_per_day_max } = self.quota;
        if sum.writes >= writes_per_day_max || sum.bytes >= bytes_per_day_max {
            who.exhaust(over(sum, self.quota, now));
        }
        Ok(Meter { usage: self, who: who.clone(), at, done: None })
    }

    /// Takes in what the control store knows of a tenant's day.
    async fn load(&self, at: &(Tenant, i64)) -> Result<Used> {
        if self.used().len() >= TENANTS_MAX {
            return Err(Problem::new(Code::Overloaded, "too many tenants write at the same time")
                .hint("Try again in a few seconds; nothing was done.")
                .retryable());
        }
        let stored = self.stored(at).await?;
        let used = Used { stored, pending: Amount::default() };
        Ok(*self.used().entry(at.clone()).or_insert(used))
    }

    async fn stored(&self, at: &(Tenant, i64)) -> keyward::Result<Amount> {
        let numbers = self.store.get_many(&keys(at)).await?;
        let number = |which: usize| {
            let entry = numbers.get(which)?.as_ref()?;
            u64::try_from(entry.value.as_integer()?).ok()
        };
        Ok(Amount { writes: number(0).unwrap_or(0), bytes: number(1).unwrap_or(0) })
    }

    /// Tells the control store what was written, and forgets who has been told of. What could not be
    /// told is told the next time.
    pub async fn flush(&self) -> keyward::Result<()> {
        let all: Vec<_> = self.used().iter().map(|(at, used)| (at.clone(), *used)).collect();
        let today = day(self.clock.now());
        for (at, used) in all {
            let told = used.pending;
            if told == Amount::default() {
                // Whoever writes again is looked up again.
                let mut all = self.used();
                if all.get(&at).is_some_and(|used| used.pending == Amount::default())
                    && (at.1 != today || all.len() > TENANTS_MAX / 2)
                {
                    all.remove(&at);
                }
                continue;
            }
            let [writes, bytes] = keys(&at);
            // One after the other: they are two numbers, and not every engine changes two at once.
            self.add(writes, told.writes).await?;
            self.take_off(&at, Amount { writes: told.writes, bytes: 0 });
            self.add(bytes, told.bytes).await?;
            self.take_off(&at, Amount { writes: 0, bytes: told.bytes });
            let stored = self.stored(&at).await?;
            if let Some(used) = self.used().get_mut(&at) {
                used.stored = stored;
            }
        }
        Ok(())
    }

    /// Moves to what the store knows what it has been told.
    fn take_off(&self, at: &(Tenant, i64), told: Amount) {
        if let Some(used) = self.used().get_mut(at) {
            used.stored = used.stored.and(told);
            used.pending.writes = used.pending.writes.saturating_sub(told.writes);
            used.pending.bytes = used.pending.bytes.saturating_sub(told.bytes);
        }
    }

    /// Adds to a number, which ends some time after its day.
    async fn add(&self, key: Key, amount: u64) -> keyward::Result<()> {
        let amount = i64::try_from(amount).unwrap_or(i64::MAX);
        if amount == 0 {
            return Ok(());
        }
        if self.store.get(&key).await?.is_none() {
            let expiry = match self.store.capabilities().expiry {
                ExpirySupport::Supported { .. } => Some(Expiry::After(KEPT)),
                ExpirySupport::Unsupported => None,
            };
            let put = Put { expiry, ..Put::new(Json::from_integer(amount)) };
            let first = Commit::new().check(key.clone(), Expect::Absent).put(key.clone(), put);
            if let Outcome::Applied { .. } = self.store.commit(first).await? {
                return Ok(());
            }
        }
        self.store.commit(Commit::new().add(key, amount)).await.map(drop)
    }
}

/// What one request writes: counted when this is dropped, unless the request was refused. One that was
/// given up while it was worked on counts.
#[derive(Debug)]
pub(crate) struct Meter<'u> {
    usage: &'u Usage,
    who: Identity,
    at: (Tenant, i64),
    done: Option<bool>,
}

impl Meter<'_> {
    /// Tells how the request ended.
    pub fn end(mut self, done: bool) {
        self.done = Some(done);
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        let writes = self.who.act().is_some_and(|act| act.need == Need::Write);
        if !writes || self.done == Some(false) {
            return;
        }
        let keys = u64::try_from(self.who.touched().total).unwrap_or(u64::MAX).max(1);
        let written = Amount { writes: keys, bytes: self.who.sent_bytes() };
        let mut all = self.usage.used();
        let used = all.entry(self.at.clone()).or_default();
        used.pending = used.pending.and(written);
    }
}

fn day(now: Timestamp) -> i64 {
    now.as_second().div_euclid(DAY_SECONDS)
}

fn keys((tenant, day): &(Tenant, i64)) -> [Key; 2] {
    let below = place(USAGE, &day.to_string()).child(tenant.name());
    [below.child("writes"), below.child("bytes")]
}

fn over(used: Amount, quota: Quota, now: Timestamp) -> Problem {
    let seconds = DAY_SECONDS - now.as_second().rem_euclid(DAY_SECONDS);
    let Quota { writes_per_day_max, bytes_per_day_max } = quota;
    let detail = format!(
        "{} of {writes_per_day_max} writes and {} of {bytes_per_day_max} bytes of this day are used up",
        used.writes, used.bytes
    );
    Problem::new(Code::OverQuota, detail)
        .hint(format!("Try again after {seconds} s, when the next day begins; nothing was done."))
        .retryable()
        .retry_after(Duration::from_secs(seconds.unsigned_abs()))
}
