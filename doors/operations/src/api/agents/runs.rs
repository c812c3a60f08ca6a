//! What runs of agents did.

use keyward::agents::{Operations, Runs};

use super::{ReachedUser, checked};
use crate::identity::{Identity, Need};
use crate::problem::Result;

/// A page of the runs that have a log, in the order of their names.
pub async fn list(
    who: &Identity,
    reached: &ReachedUser<'_>,
    cursor: Option<String>,
    limit: usize,
) -> Result<Runs> {
    reached.require(who, Need::Read)?;
    Ok(reached.user.runs(cursor, limit).await?)
}

/// A page of what a run did, in the order of time.
pub async fn operations(
    who: &Identity,
    reached: &ReachedUser<'_>,
    run: &str,
    cursor: Option<String>,
    limit: usize,
) -> Result<Operations> {
    reached.require(who, Need::Read)?;
    let run = checked("run", run)?;
    Ok(reached.user.operations(run, cursor, limit).await?)
}
