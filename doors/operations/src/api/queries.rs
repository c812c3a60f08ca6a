//! Queries of a space: within the server's bounds, beside the threads that answer requests.

use keyward::records::{
    self, Answer, BUDGET_MAX, Explanation, HistoryPage, Listed, Listing, Near, Neighbours, Query,
    Record, Space, Within,
};
use keyward::{Json, Key};

use super::several;
use super::spaces::Reached;
use crate::identity::Identity;
use crate::problem::Result;
use crate::services::Services;

/// After how many bytes of values and metadata a page ends, however many items were asked for.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One page of what a query asks for.
pub async fn query(
    who: &Identity,
    services: &Services,
    reached: &Reached<'_>,
    query: Query,
) -> Result<Answer> {
    let budget = bounded(services, query.budget);
    let query = query.budget(budget).bytes_max(PAGE_BYTES_MAX);
    beside(who, services, reached, |space| async move { space.query(&query).await }).await
}

/// How a query is answered.
pub async fn explain(
    who: &Identity,
    services: &Services,
    reached: &Reached<'_>,
    mut query: Query,
) -> Result<Explanation> {
    query.budget = bounded(services, query.budget);
    beside(who, services, reached, |space| async move { space.explain(&query).await }).await
}

/// The places nearest to a point.
pub async fn near(
    who: &Identity,
    services: &Services,
    reached: &Reached<'_>,
    near: Near,
) -> Result<Neighbours> {
    let budget = bounded(services, near.budget);
    let near = near.budget(budget).bytes_max(PAGE_BYTES_MAX);
    beside(who, services, reached, |space| async move { space.near(&near).await }).await
}

/// One page of the places in a box.
pub async fn within(
    who: &Identity,
    services: &Services,
    reached: &Reached<'_>,
    within: Within,
) -> Result<Answer> {
    let budget = bounded(services, within.budget);
    let within = within.budget(budget).bytes_max(PAGE_BYTES_MAX);
    beside(who, services, reached, |space| async move { space.within(&within).await }).await
}

/// Some records, in the order of their keys.
pub async fn get_many(
    who: &Identity,
    services: &Services,
    reached: &Reached<'_>,
    keys: Vec<Key>,
) -> Result<Vec<Option<Record>>> {
    several::refuse_twice(&keys)?;
    let read = |space: Space| async move { space.get_many(&keys).await };
    let records = beside(who, services, reached, read).await?;
    several::check(
        records
            .iter()
            .flatten()
            .map(|record| record.value.len() + record.metadata.as_ref().map_or(0, Json::len)),
    )?;
    Ok(records)
}

/// One page of a space's keys.
pub async fn list(
    who: &Identity,
    services: &Services,
    reached: &Reached<'_>,
    mut listing: Listing,
) -> Result<Listed> {
    listing.budget = bounded(services, listing.budget);
    beside(who, services, reached, |space| async move { space.list(&listing).await }).await
}

/// One page of earlier versions of a record, the newest first.
pub async fn history(
    who: &Identity,
    services: &Services,
    reached: &Reached<'_>,
    key: Key,
    before: Option<u64>,
    limit: usize,
) -> Result<HistoryPage> {
    beside(who, services, reached, |space| async move {
        space.history_page(&key, before, limit, PAGE_BYTES_MAX).await
    })
    .await
}

/// How many entries are read for a page that asks for so many: one that may read fewer ends early, and
/// goes on from its cursor. What no page may ask for is left to be refused.
pub fn bounded(services: &Services, budget: usize) -> usize {
    match budget {
        1..=BUDGET_MAX => budget.min(services.limits().query_reads_max.max(1)),
        _ => budget,
    }
}

async fn beside<T, F>(
    who: &Identity,
    services: &Services,
    reached: &Reached<'_>,
    read: impl FnOnce(Space) -> F,
) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = records::Result<T>> + Send + 'static,
{
    let read = read(reached.space.clone());
    services.reads().run(who, reached.served.store(), async move { Ok(read.await?) }).await
}
