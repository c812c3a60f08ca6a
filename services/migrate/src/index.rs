//! Making and removing indexes while others write.

use keyward_engine::Tier;
use keyward_key::{Key, KeyRange, Prefix};
use keyward_records::{CatalogContent, CatalogedIndex, Flaw, IndexState, Inspected, Records};
use keyward_schema::Index;

use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::ledger::Phase;
use crate::migrator::Run;
use crate::plan::Differing;

/// Makes an index: each step can be done again, so a run that was killed in one begins with it.
pub(crate) async fn add(run: &mut Run<'_>, space: &str, index: &Index) -> Result<()> {
    let name = index.name.as_str();
    loop {
        match run.phase() {
            Phase::Begin => {
                let phase = begin(run, space, index).await?;
                run.enter(phase).await?;
            }
            Phase::Sweep => {
                run.settle().await?;
                sweep(run, name).await?;
                run.enter(Phase::Announce).await?;
            }
            Phase::Announce => {
                announce(run.records(), space, index).await?;
                run.settle().await?;
                run.enter(Phase::Walk).await?;
            }
            Phase::Walk => {
                walk(run, name).await?;
                let phase = if run.migration().counts.problems == 0 {
                    Phase::CheckRecords
                } else {
                    Phase::Withdraw
                };
                run.enter(phase).await?;
            }
            Phase::CheckRecords => {
                run.appear().await?;
                check_records(run, space, name).await?;
                run.enter(Phase::CheckEntries).await?;
            }
            Phase::CheckEntries => {
                check_entries(run, name).await?;
                if run.migration().counts.problems > 0 {
                    run.enter(Phase::Withdraw).await?;
                    continue;
                }
                run.records().finish_index(name).await?;
                if is_given_up(run.records(), space, index).await? {
                    // Somebody gave the index up meanwhile.
                    return Err(Error::Overtaken { id: run.migration().id.clone() });
                }
                return run.end().await;
            }
            Phase::Withdraw if matches!(run.definition(), Definition::AdoptIndex { .. }) => {
                disable(run.records(), name).await?;
                run.settle().await?;
                run.enter(Phase::Restore).await?;
            }
            Phase::Withdraw => {
                disable(run.records(), name).await?;
                run.settle().await?;
                sweep(run, name).await?;
                return run.end().await;
            }
            // Those of an adoption alone.
            Phase::Compare | Phase::Restore | Phase::End => return Ok(()),
        }
    }
}

/// Removes an index, its row in the catalog last.
pub(crate) async fn drop(run: &mut Run<'_>, name: &str) -> Result<()> {
    if disable(run.records(), name).await? {
        run.enter(Phase::Sweep).await?;
        run.settle().await?;
        sweep(run, name).await?;
        forget(run.records(), name).await?;
    }
    run.end().await
}

/// Takes an index that nobody keeps out of the catalog.
pub(crate) async fn forget(records: &Records, name: &str) -> Result<()> {
    let forget = records.change_catalog(|content| {
        if content.indexes.get(name).is_some_and(|it| it.state == IndexState::Disabled) {
            content.indexes.remove(name);
        }
        Ok(())
    });
    forget.await?;
    Ok(())
}

/// What has to be done first.
async fn begin(run: &mut Run<'_>, space: &str, index: &Index) -> Result<Phase> {
    if run.records().declarations().all(|declared| declared.name != space) {
        return Err(Error::Refused(format!("the schema declares no space {space}")));
    }
    let catalog = run.records().catalog().await?;
    refuse_foreign(run.records(), &catalog, space, index)?;
    match catalog.indexes.get(&index.name) {
        None => Ok(Phase::Announce),
        Some(listed)
            if listed.definition == *index
                && listed.space == space
                && listed.state != IndexState::Disabled =>
        {
            Ok(Phase::Announce)
        }
        Some(_) => {
            disable(run.records(), &index.name).await?;
            Ok(Phase::Sweep)
        }
    }
}

/// Refuses an index of a space that has other keys in the store, and one whose name one of a space has
/// that the schema does not declare.
pub(crate) fn refuse_foreign(
    records: &Records,
    catalog: &CatalogContent,
    space: &str,
    index: &Index,
) -> Result<()> {
    let declared = records.declarations().find(|declared| declared.name == space);
    if let Some(differing) = declared.and_then(|declared| Differing::find(declared, catalog)) {
        return Err(Error::Refused(differing.to_string()));
    }
    match catalog.indexes.get(&index.name) {
        Some(listed) if records.declarations().all(|it| it.name != listed.space) => {
            Err(Error::Refused(format!(
                "the space {} has an index {}, and the schema does not declare that space",
                listed.space, index.name
            )))
        }
        _ => Ok(()),
    }
}

/// Whether an index that was just made readable is not.
async fn is_given_up(records: &Records, space: &str, index: &Index) -> Result<bool> {
    if records.store().capabilities().tier() == Tier::Advisory {
        // Reads are late there: nobody can tell.
        return Ok(false);
    }
    let catalog = records.catalog().await?;
    Ok(!catalog.indexes.get(&index.name).is_some_and(|listed| {
        listed.state == IndexState::Readable && listed.space == space && listed.definition == *index
    }))
}

/// Lets nobody keep or ask an index. Whether there is one.
async fn disable(records: &Records, name: &str) -> Result<bool> {
    let change = records.change_catalog(|content| {
        if let Some(listed) = content.indexes.get_mut(name) {
            listed.state = IndexState::Disabled;
        }
        Ok(())
    });
    Ok(change.await?.indexes.contains_key(name))
}

/// Lets every writer keep an index from now on.
pub(crate) async fn announce(records: &Records, space: &str, index: &Index) -> Result<()> {
    let row = CatalogedIndex {
        space: space.to_owned(),
        definition: index.clone(),
        state: IndexState::Building,
    };
    let declared = records.declarations().find(|declared| declared.name == space);
    let change = records.change_catalog(|content| {
        if let Some(declared) = declared {
            content.note_keys(declared);
        }
        let listed = content.indexes.entry(index.name.clone()).or_insert_with(|| row.clone());
        // One that is readable already stays so: it has what is about to be added.
        let is_it = listed.definition == row.definition && listed.space == row.space;
        if listed.state == IndexState::Disabled || !is_it {
            *listed = row.clone();
        }
        Ok(())
    });
    change.await?;
    Ok(())
}

async fn sweep(run: &mut Run<'_>, name: &str) -> Result<()> {
    loop {
        let position = run.migration().position()?;
        let swept = run.records().sweep_index(name, position, run.page()).await?;
        run.migration().counts.swept += count(swept.entries);
        match swept.position {
            Some(position) => run.reach(Some(&position), swept.entries).await?,
            None => return Ok(()),
        }
    }
}

async fn walk(run: &mut Run<'_>, name: &str) -> Result<()> {
    loop {
        let position = run.migration().position()?;
        let built = run.records().build_index(name, position, run.page()).await?;
        let counts = &mut run.migration().counts;
        counts.records += count(built.records);
        counts.entries += count(built.entries);
        for (key, message) in built.clashes {
            run.problem(&key, message);
        }
        match built.position {
            Some(position) => run.reach(Some(&position), built.records).await?,
            None => return Ok(()),
        }
    }
}

async fn check_records(run: &mut Run<'_>, space: &str, name: &str) -> Result<()> {
    let inspector = run.records().inspector().await?.only(name);
    loop {
        let position = run.migration().position()?;
        let inspected = inspector.inspect_space(space, position, run.page()).await?;
        if !checked(run, inspected).await? {
            return Ok(());
        }
    }
}

async fn check_entries(run: &mut Run<'_>, name: &str) -> Result<()> {
    let inspector = run.records().inspector().await?.only(name);
    let range = KeyRange::under(&Prefix::from_segments(["index", name]));
    loop {
        let position = run.migration().position()?;
        let inspected = inspector.inspect_range(&range, position, run.page()).await?;
        if !checked(run, inspected).await? {
            return Ok(());
        }
    }
}

/// Notes what is wrong; whether there is more to check.
async fn checked(run: &mut Run<'_>, inspected: Inspected) -> Result<bool> {
    let atomic = run.records().store().capabilities().tier() == Tier::Atomic;
    run.migration().counts.checked += count(inspected.rows);
    for finding in inspected.findings {
        let wrong = match finding.flaw {
            Flaw::MissingEntry
            | Flaw::WrongEntry
            | Flaw::TakenEntry
            | Flaw::DuplicateValue
            | Flaw::Unindexable => true,
            // Elsewhere a writer who is under way leaves entries before the record; readers drop
            // them.
            Flaw::OrphanedEntry | Flaw::BrokenEntry => atomic,
            _ => false,
        };
        if wrong {
            let key: &Key = finding.record.as_ref().unwrap_or(&finding.key);
            run.problem(key, format!("{}: {}", finding.key, finding.message));
        }
    }
    match inspected.position {
        Some(position) => {
            run.reach(Some(&position), inspected.rows).await?;
            Ok(true)
        }
        None => Ok(false),
    }
}

/// A number of rows as the ledger counts.
pub(crate) fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
