//! Queries of a space: within the server's bounds, beside the threads that answer requests.

use keyward::{Json, Key};
use keyward::records::{
    self, Answer, BUDGET_MAX, Explanation, LIMIT_MAX, Listed, Listing, Near, Neighbours, Past,
    Query, Record, Space, Within,
};

use super::several;
use super::spaces::Reached;
use crate::app::App;
use crate::auth::Identity;
use crate::problem::Result;

/// One page of what a query asks for, as `shown` writes it.
pub(crate) async fn query(
    who: &Identity,
    app: &App,
    reached: &Reached<'_>,
    mut query: Query,
    shown: fn(&Answer) -> String,
) -> Result<String> {
    query.budget = bounded(app, query.budget);
    beside(who, app, reached, |space| async move {
        let step = Step { limit: query.limit, budget: query.budget, after: query.cursor.take() };
        let answer = gathered(step, |Step { limit, budget, after }| {
            let (space, query) = (space.clone(), query.clone());
            async move { space.query(&query.limit(limit).budget(budget).after(after)).await }
        });
        answer.await.map(|answer| shown(&answer))
    })
    .await
}

/// How a query is answered.
pub(crate) async fn explain(
    who: &Identity,
    app: &App,
    reached: &Reached<'_>,
    mut query: Query,
) -> Result<Explanation> {
    query.budget = bounded(app, query.budget);
    beside(who, app, reached, |space| async move { space.explain(&query).await }).await
}

/// The places nearest to a point, as `shown` writes them.
pub(crate) async fn near(
    who: &Identity,
    app: &App,
    reached: &Reached<'_>,
    mut near: Near,
    shown: fn(&Neighbours) -> String,
) -> Result<String> {
    near.budget = bounded(app, near.budget);
    beside(
        who,
        app,
        reached,
        |space| async move { space.near(&near).await.map(|found| shown(&found)) },
    )
    .await
}

/// One page of the places in a box, as `shown` writes it.
pub(crate) async fn within(
    who: &Identity,
    app: &App,
    reached: &Reached<'_>,
    mut within: Within,
    shown: fn(&Answer) -> String,
) -> Result<String> {
    within.budget = bounded(app, within.budget);
    beside(who, app, reached, |space| async move {
        let step = Step { limit: within.limit, budget: within.budget, after: within.cursor.take() };
        let answer = gathered(step, |Step { limit, budget, after }| {
            let (space, within) = (space.clone(), within.clone());
            async move { space.within(&within.limit(limit).budget(budget).after(after)).await }
        });
        answer.await.map(|answer| shown(&answer))
    })
    .await
}

/// How large a page grows before it ends; the records of its last step come on top.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many records are read before anything is known of their size.
const FIRST_RECORDS: usize = 32;

/// A part of a page.
struct Step {
    limit: usize,
    budget: usize,
    after: Option<String>,
}

/// A page, put together from smaller ones: it ends when it is large, however many records were asked for.
async fn gathered<F>(whole: Step, ask: impl Fn(Step) -> F) -> records::Result<Answer>
where
    F: Future<Output = records::Result<Answer>>,
{
    let Step { limit, budget, after } = whole;
    // What no page may ask for is left to be refused.
    let first = if limit <= LIMIT_MAX { limit.min(FIRST_RECORDS) } else { limit };
    let mut answer = ask(Step { limit: first, budget, after }).await?;
    loop {
        let (records, read) = (answer.records.len(), answer.read.entries);
        let bytes: usize = answer.records.iter().map(|record| record.value.len()).sum();
        if answer.next.is_none() || records >= limit || read >= budget || bytes >= PAGE_BYTES_MAX {
            return Ok(answer);
        }
        let fitting = (PAGE_BYTES_MAX - bytes) / (bytes / records.max(1)).max(1);
        let step = Step {
            limit: (limit - records).min(fitting.max(1)),
            budget: budget - read,
            after: answer.next.take(),
        };
        let more = ask(step).await?;
        answer.records.extend(more.records);
        answer.next = more.next;
        answer.read.entries += more.read.entries;
        answer.read.records += more.read.records;
        answer.read.dropped += more.read.dropped;
    }
}

/// Some records, in the order of their keys.
pub(crate) async fn get_many(
    who: &Identity,
    app: &App,
    reached: &Reached<'_>,
    keys: Vec<Key>,
) -> Result<Vec<Option<Record>>> {
    several::refuse_twice(&keys)?;
    let read = |space: Space| async move { space.get_many(&keys).await };
    let records = beside(who, app, reached, read).await?;
    several::check(records.iter().flatten().map(|record| {
        record.value.len() + record.metadata.as_ref().map_or(0, Json::len)
    }))?;
    Ok(records)
}

/// One page of a space's keys.
pub(crate) async fn list(
    who: &Identity,
    app: &App,
    reached: &Reached<'_>,
    mut listing: Listing,
) -> Result<Listed> {
    listing.budget = bounded(app, listing.budget);
    beside(who, app, reached, |space| async move { space.list(&listing).await }).await
}

/// Earlier versions of a record, the newest first.
pub(crate) async fn history(
    who: &Identity,
    app: &App,
    reached: &Reached<'_>,
    key: Key,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<Past>> {
    beside(who, app, reached, |space| async move { space.history(&key, before, limit).await }).await
}

/// How many entries are read for a page that asks for so many: one that may read fewer ends early, and
/// goes on from its cursor. What no page may ask for is left to be refused.
pub(crate) fn bounded(app: &App, budget: usize) -> usize {
    match budget {
        1..=BUDGET_MAX => budget.min(app.limits().query_reads_max.max(1)),
        _ => budget,
    }
}

async fn beside<T, F>(
    who: &Identity,
    app: &App,
    reached: &Reached<'_>,
    read: impl FnOnce(Space) -> F,
) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = records::Result<T>> + Send + 'static,
{
    let read = read(reached.space.clone());
    app.reads().run(who, reached.served.store(), async move { Ok(read.await?) }).await
}
