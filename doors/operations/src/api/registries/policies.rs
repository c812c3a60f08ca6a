//! The documents of a registry.

use keyward::registry::{Content, Page, Policy};

use super::reach;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::services::Services;

/// The longest text that is searched for.
const SEARCH_BYTES_MAX: usize = 200;

/// Which policies are listed.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The last name of the page before.
    pub after: Option<String>,
    pub limit: usize,
    /// Only those whose name or title has this in it.
    pub search: Option<String>,
}

/// A page of policies, in the order of names.
pub async fn list(
    who: &Identity,
    services: &Services,
    name: &str,
    listing: &Listing,
) -> Result<Page<Policy>> {
    let kept = reach(who, services, name, Need::Read)?;
    let Listing { after, limit, search } = listing.clone();
    if search.as_ref().is_some_and(|text| text.len() > SEARCH_BYTES_MAX) {
        let detail = format!("a text to search for has at most {SEARCH_BYTES_MAX} bytes");
        return Err(Problem::invalid(detail));
    }
    let registry = kept.registry.clone();
    let read = async move {
        let after = after.as_deref();
        Ok(match search.as_deref() {
            None | Some("") => registry.policies(after, limit).await?,
            Some(text) => registry.search(text, after, limit).await?,
        })
    };
    services.reads().run(who, services.store(kept.store())?.store(), read).await
}

/// A policy.
pub async fn show(who: &Identity, services: &Services, name: &str, policy: &str) -> Result<Policy> {
    let kept = reach(who, services, name, Need::Read)?;
    kept.registry.policy(policy).await?.ok_or_else(|| absent(name, policy))
}

/// A policy and its content.
pub async fn content(
    who: &Identity,
    services: &Services,
    name: &str,
    policy: &str,
) -> Result<Content> {
    let kept = reach(who, services, name, Need::Read)?;
    kept.registry.content(policy).await?.ok_or_else(|| absent(name, policy))
}

fn absent(registry: &str, policy: &str) -> Problem {
    Problem::not_found(format!("the registry {registry} has no policy {policy:?}"))
}
