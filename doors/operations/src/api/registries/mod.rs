//! Registries: documents that are kept in git, and what runs do with them. They are the store's, and no
//! user's.

pub mod policies;
pub mod queue;
pub mod runs;

use keyward::Code;
use keyward::registry::{Migrated, Status};

use crate::authorize::admit_to;
use crate::identity::{Identity, Need, Target};
use crate::problem::{Problem, Result};
use crate::registries::Kept;
use crate::services::Services;

/// A registry, for who may do this with it. What is refused does not depend on what there is: one that
/// the scopes do not reach is told of in the same way as one that does not exist.
pub fn reach<'a>(
    who: &Identity,
    services: &'a Services,
    name: &str,
    need: Need,
) -> Result<&'a Kept> {
    let found = services.registries().get(name);
    admit_to(who, need, &target(name, found), "registries")?;
    found.ok_or_else(|| {
        Problem::new(Code::UnknownRegistry, format!("there is no registry called {name:?}"))
            .hint("GET /v1/registries lists those that this credential reaches.")
    })
}

/// What scopes are compared with. No store has the name of one that does not exist.
fn target<'t>(registry: &'t str, found: Option<&'t Kept>) -> Target<'t> {
    Target::Registry { registry, store: found.map_or("", Kept::store) }
}

/// The registries in which a caller may do something, by name.
pub fn list<'a>(
    who: &'a Identity,
    services: &'a Services,
    need: Need,
) -> impl Iterator<Item = &'a Kept> {
    let bound = who.bound_to().is_some();
    services.registries().iter().filter(move |kept| {
        !bound && who.scopes().allow(need, &target(kept.registry.name(), Some(kept)))
    })
}

/// How a registry stands.
pub async fn status<'a>(
    who: &Identity,
    services: &'a Services,
    name: &str,
) -> Result<(&'a Kept, Status)> {
    let kept = reach(who, services, name, Need::Read)?;
    Ok((kept, kept.registry.status().await?))
}

/// Moves entries of version 1 to the names of their files, and drops members that are past their time;
/// or tells what that would do.
pub async fn migrate(
    who: &Identity,
    services: &Services,
    name: &str,
    dry_run: bool,
) -> Result<Migrated> {
    let kept = reach(who, services, name, Need::Admin)?;
    let time_max = services.waits().at_most(services.limits().answer_time_max);
    let migrating = kept.registry.migrate(dry_run);
    match tokio::time::timeout(time_max, migrating).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Problem::new(
            Code::TimedOut,
            "the registry is larger than there was time for",
        )
        .hint("Ask again: what is moved stays moved. keyward registry migrate takes its time.")),
    }
}
