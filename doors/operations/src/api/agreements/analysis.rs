//! Having a model look for issues.

use keyward::Code;
use keyward::agreements::Analysis;

use super::{page_id, pages, reach};
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::services::Services;

/// Looks whether a page can be analysed, before a job is made that would fail.
pub async fn check(who: &Identity, services: &Services, name: &str, page: &str) -> Result<()> {
    let kept = reach(who, services, name, Need::Write)?;
    let page = page_id(page)?;
    if !kept.workspace.has_models() {
        return Err(unset(name));
    }
    pages::found(kept, &page).await.map(drop)
}

/// What is told where no model is set.
fn unset(name: &str) -> Problem {
    let detail = format!("the workspace {name} has no model: nothing is translated or analysed");
    Problem::new(Code::ModelUnset, detail).hint(format!(
        "Set [agreements.{name}.models] in the configuration: provider and model, and what that \
         provider needs; then start the server again."
    ))
}

/// What the last analysis of a page came to.
pub async fn last(who: &Identity, services: &Services, name: &str, page: &str) -> Result<Analysis> {
    let kept = reach(who, services, name, Need::Read)?;
    let page = page_id(page)?;
    pages::found(kept, &page).await?;
    kept.workspace.last_analysis(&page).await?.ok_or_else(|| {
        Problem::not_found(format!("the page {page} has not been analysed"))
            .hint("Have it analysed first.")
    })
}
