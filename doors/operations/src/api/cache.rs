//! Results of expensive work, which clients compute.

use keyward::cache::{Cached, Claim, Fetch, HeldBack, Ticket};
use keyward::locks::Renewal;
use keyward::{Json, Key};

use crate::authorize::admit;
use crate::idempotency::Mark;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::stores::Served;

/// What is cached and fresh, or the right to compute it; waits for others who do. With a mark, the
/// same request gets the same right while it lasts.
pub async fn lookup(
    who: &Identity,
    served: &Served,
    key: &Key,
    fetch: &Fetch,
    mark: Option<&Mark>,
) -> Result<Claim> {
    admit_made(who, served, key, &fetch.depends_on)?;
    let name = mark.map(Mark::exact_name);
    Ok(served.cache()?.claim(key, fetch, name.as_deref()).await?)
}

/// What is cached, fresh or stale.
pub async fn show(who: &Identity, served: &Served, key: &Key) -> Result<Option<Cached>> {
    admit(who, served, key, Need::Read)?;
    Ok(served.cache()?.show(key).await?)
}

/// Caches what was computed.
pub async fn publish(
    who: &Identity,
    served: &Served,
    key: &Key,
    ticket: &Ticket,
    value: Json,
) -> Result<Cached> {
    admit_ticket(who, served, key, ticket)?;
    Ok(served.cache()?.publish(ticket, value).await?)
}

/// Says that a computation failed.
pub async fn fail(
    who: &Identity,
    served: &Served,
    key: &Key,
    ticket: &Ticket,
    message: &str,
) -> Result<HeldBack> {
    admit_ticket(who, served, key, ticket)?;
    Ok(served.cache()?.fail(ticket, message).await?)
}

/// Renews the lease of a computation.
pub async fn renew(who: &Identity, served: &Served, key: &Key, ticket: &Ticket) -> Result<Renewal> {
    admit_ticket(who, served, key, ticket)?;
    Ok(served.cache()?.renew(ticket).await?)
}

/// Gives the right to compute back.
pub async fn release(who: &Identity, served: &Served, key: &Key, ticket: &Ticket) -> Result<()> {
    admit_ticket(who, served, key, ticket)?;
    Ok(served.cache()?.abandon(ticket).await?)
}

/// Drops a result, and with it all that was made from it. Says how many there were.
pub async fn drop(who: &Identity, served: &Served, key: &Key) -> Result<u64> {
    admit(who, served, key, Need::Write)?;
    Ok(served.cache()?.invalidate(key).await?.values)
}

fn admit_made(who: &Identity, served: &Served, key: &Key, depends_on: &[Key]) -> Result<()> {
    admit(who, served, key, Need::Write)?;
    depends_on.iter().try_for_each(|key| admit(who, served, key, Need::Read))
}

fn admit_ticket(who: &Identity, served: &Served, key: &Key, ticket: &Ticket) -> Result<()> {
    admit_made(who, served, key, ticket.depends_on())?;
    if ticket.key() == key {
        return Ok(());
    }
    Err(Problem::invalid("this is the ticket of another key")
        .hint("Send it to the key that it was given for."))
}
