//! Registries: documents that are kept in git, and what runs do with them. They are the store's, and no
//! user's.

pub(crate) mod policies;
pub(crate) mod queue;
pub(crate) mod runs;

use keyward::Code;
use keyward::registry::{Migrated, Status};

use crate::api::reach::admit_to;
use crate::app::App;
use crate::auth::{Identity, Need, Target};
use crate::problem::{Problem, Result};
use crate::registries::Kept;

/// A registry, for who may do this with it. What is refused does not depend on what there is: one that
/// the scopes do not reach is told of in the same way as one that does not exist.
pub(crate) fn reach<'a>(who: &Identity, app: &'a App, name: &str, need: Need) -> Result<&'a Kept> {
    let found = app.registries().get(name);
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
pub(crate) fn list<'a>(
    who: &'a Identity,
    app: &'a App,
    need: Need,
) -> impl Iterator<Item = &'a Kept> {
    let bound = who.bound_to().is_some();
    app.registries().iter().filter(move |kept| {
        !bound && who.scopes().allow(need, &target(kept.registry.name(), Some(kept)))
    })
}

/// How a registry stands.
pub(crate) async fn status<'a>(
    who: &Identity,
    app: &'a App,
    name: &str,
) -> Result<(&'a Kept, Status)> {
    let kept = reach(who, app, name, Need::Read)?;
    Ok((kept, kept.registry.status().await?))
}

/// Moves entries of version 1 to the names of their files, and drops members that are past their time;
/// or tells what that would do.
pub(crate) async fn migrate(
    who: &Identity,
    app: &App,
    name: &str,
    dry_run: bool,
) -> Result<Migrated> {
    let kept = reach(who, app, name, Need::Admin)?;
    let time_max = app.waits().at_most(app.limits().answer_time_max);
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
