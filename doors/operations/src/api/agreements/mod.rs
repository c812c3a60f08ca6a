//! Agreements: pages, what was made of their policies, and their issues. They are the store's, and no
//! user's.

pub mod analysis;
pub mod issues;
pub mod pages;
pub mod policies;
pub mod tasks;

use keyward::Code;
use keyward::agreements::{PageId, QUEUE, SourceId};
use keyward::queue::QueueStats;

use crate::agreements::Kept;
use crate::authorize::admit_to;
use crate::identity::{Identity, Need, Target};
use crate::problem::{Problem, Result};
use crate::services::Services;

/// A workspace, for who may do this with it. What is refused does not depend on what there is: one that
/// the scopes do not reach is told of in the same way as one that does not exist.
pub fn reach<'a>(
    who: &Identity,
    services: &'a Services,
    name: &str,
    need: Need,
) -> Result<&'a Kept> {
    let found = services.agreements().get(name);
    admit_to(who, need, &target(name, found), "agreements")?;
    found.ok_or_else(|| {
        Problem::new(Code::UnknownWorkspace, format!("there is no workspace called {name:?}"))
            .hint("GET /v1/agreements lists those that this credential reaches.")
    })
}

/// What scopes are compared with. No store has the name of one that does not exist.
fn target<'t>(workspace: &'t str, found: Option<&'t Kept>) -> Target<'t> {
    Target::Agreements { workspace, store: found.map_or("", Kept::store) }
}

/// The workspaces in which a caller may do something, by name.
pub fn list<'a>(
    who: &'a Identity,
    services: &'a Services,
    need: Need,
) -> impl Iterator<Item = &'a Kept> {
    let bound = who.bound_to().is_some();
    services
        .agreements()
        .iter()
        .filter(move |kept| !bound && who.scopes().allow(need, &target(kept.name(), Some(kept))))
}

/// How a workspace stands: what of its tasks waits, and what is worked on.
pub async fn status<'a>(
    who: &Identity,
    services: &'a Services,
    name: &str,
) -> Result<(&'a Kept, QueueStats)> {
    let kept = reach(who, services, name, Need::Read)?;
    Ok((kept, kept.workspace.jobs().queue(QUEUE)?.stats().await?))
}

/// A page's id as a request has it.
pub fn page_id(text: &str) -> Result<PageId> {
    Ok(PageId::new(text)?)
}

/// A policy's id as a request has it.
pub fn source_id(text: &str) -> Result<SourceId> {
    Ok(SourceId::new(text)?)
}

/// Who did something, as issues and jobs remember it.
fn name_of(who: &Identity) -> &str {
    who.tenant().name()
}
