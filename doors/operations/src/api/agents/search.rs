//! Entries that fulfil conditions.

use keyward::agents::{Found, Search};

use super::{Reached, ReachedUser};
use crate::api::queries;
use crate::identity::{Identity, Need};
use crate::problem::Result;
use crate::services::Services;

/// A page of the entries of a namespace that a search asks for. They do not count as accessed.
pub async fn search(who: &Identity, reached: &Reached<'_>, search: &Search) -> Result<Found> {
    reached.require(who, Need::Read)?;
    let search = bounded(reached.services, search);
    reached.beside(who, |namespace| async move { namespace.search(&search).await }).await
}

/// The same in all namespaces of a user.
pub async fn search_everywhere(
    who: &Identity,
    reached: &ReachedUser<'_>,
    search: &Search,
) -> Result<Found> {
    reached.require(who, Need::Read)?;
    let search = bounded(reached.services, search);
    reached.beside(who, |user| async move { user.search(&search).await }).await
}

fn bounded(services: &Services, search: &Search) -> Search {
    let budget = queries::bounded(services, search.budget);
    search.clone().budget(budget).bytes_max(queries::PAGE_BYTES_MAX)
}
