//! Changing values.

use keyward_key::Key;
use keyward_records::{Caller, Records, Space, Written};

use crate::error::Result;
use crate::index::count;
use crate::ledger::Phase;
use crate::migrator::{Change, Run};

pub(crate) fn space(records: &Records, name: &str) -> Result<Space> {
    Ok(records.space(name, &Caller::operator())?)
}

/// Whether a record was changed, or why it cannot be.
pub(crate) async fn apply(
    space: &Space,
    key: &Key,
    change: &mut Change<'_>,
) -> Result<std::result::Result<bool, String>> {
    let changed = space.update(key, |current| {
        let Some(current) = current else { return Ok(None) };
        Ok(change(current)?.filter(|value| *value != current.value))
    });
    match changed.await {
        Ok(written) => Ok(Ok(matches!(written, Written::Applied { .. }))),
        Err(error) if error.is_of_the_record() => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

pub(crate) async fn run(run: &mut Run<'_>, name: &str, change: &mut Change<'_>) -> Result<()> {
    let space = space(run.records(), name)?;
    if run.phase() == Phase::Begin {
        run.enter(Phase::Walk).await?;
    }
    if run.phase() == Phase::End {
        return Ok(());
    }
    loop {
        let position = run.migration().position()?;
        let walked = space.walk_on(position, run.page()).await?;
        let records = walked.records.len();
        run.migration().counts.records += count(records);
        for record in &walked.records {
            match apply(&space, &record.key, change).await? {
                Ok(true) => run.migration().counts.changed += 1,
                Ok(false) => {}
                Err(message) => run.problem(&record.key, message),
            }
            run.beat().await?;
        }
        match walked.position {
            Some(position) => run.reach(Some(&position), records).await?,
            None => return run.end().await,
        }
    }
}
