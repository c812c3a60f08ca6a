//! What a migration would do, without doing it.

use keyward_engine::Scan;
use keyward_key::{KeyRange, Prefix};
use keyward_records::{Caller, Record, Space};

use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::index::count;
use crate::ledger::Problem;
use crate::migrator::{Change, Migrator, RECORDS_PER_PAGE};
use crate::rekey::Rekeying;

/// What a migration would do, as far as was looked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preview {
    /// How many records it would look at; for an index that is dropped, how many entries it would
    /// remove.
    pub rows: u64,
    /// How many records it would change.
    pub changed: u64,
    /// Whether that is all of them: a preview ends after [`Preview::ROWS_MAX`].
    pub is_whole: bool,
    /// Some of the changes, at most [`Preview::EXAMPLES_MAX`]: what it is, what it becomes.
    pub examples: Vec<(String, String)>,
    /// How many records it could not change.
    pub problem_count: u64,
    /// Some of them, at most [`Preview::EXAMPLES_MAX`].
    pub problems: Vec<Problem>,
}

impl Preview {
    /// How many rows are looked at.
    pub const ROWS_MAX: u64 = 10_000;
    /// How many examples are given.
    pub const EXAMPLES_MAX: usize = 5;

    fn example(&mut self, old: String, new: String) {
        self.changed += 1;
        if self.examples.len() < Self::EXAMPLES_MAX {
            self.examples.push((old, new));
        }
    }

    fn problem(&mut self, record: &Record, message: String) {
        self.problem_count += 1;
        if self.problems.len() < Self::EXAMPLES_MAX {
            self.problems.push(Problem { key: record.key.to_string(), message });
        }
    }
}

impl Migrator {
    /// What a migration would do. Nothing is written. What a change of values would do is told by
    /// [`Migrator::preview_transform`].
    pub async fn preview(&self, definition: &Definition) -> Result<Preview> {
        let records = &self.records;
        match definition {
            Definition::AddIndex { space, .. } | Definition::RebuildIndex { space, .. } => {
                let space = records.space(space, &Caller::operator())?;
                look(&space, async |_, _| Ok(())).await
            }
            Definition::DropIndex { index, .. } => self.preview_drop(index).await,
            Definition::Rekey { space, from, to, sources } => {
                let rekeying = Rekeying::new(records, space, from, to, sources)?;
                look(&rekeying.from, async |preview, record| {
                    match rekeying.new_key(record) {
                        Ok(new) => match records.store().get(&new).await? {
                            Some(there) if there.value != record.value => {
                                preview.problem(record, format!("{new} holds another record"));
                            }
                            _ => preview.example(record.key.to_string(), new.to_string()),
                        },
                        Err(message) => preview.problem(record, message),
                    }
                    Ok(())
                })
                .await
            }
            Definition::Transform { .. } => {
                let message = "a change of values needs the function that makes it".to_owned();
                Err(Error::Refused(message))
            }
        }
    }

    /// What a change of values would do. Nothing is written; the function runs. Whether the schema
    /// and the indexes take the new values is not looked at.
    pub async fn preview_transform(&self, space: &str, change: &mut Change<'_>) -> Result<Preview> {
        let space = self.records.space(space, &Caller::operator())?;
        look(&space, async |preview, record| {
            match change(record) {
                Ok(Some(new)) if new != record.value => {
                    preview.example(record.value.to_string(), new.to_string());
                }
                Ok(_) => {}
                Err(error) => preview.problem(record, error.to_string()),
            }
            Ok(())
        })
        .await
    }

    async fn preview_drop(&self, index: &str) -> Result<Preview> {
        let range = KeyRange::under(&Prefix::from_segments(["index", index]));
        let mut preview = Preview::default();
        let mut after = None;
        while preview.rows < Preview::ROWS_MAX {
            let scan = Scan::new(range.clone()).after(after).limit(RECORDS_PER_PAGE).keys_only();
            let page = self.records.store().scan(&scan).await?;
            preview.rows += count(page.rows.len());
            after = page.next;
            if after.is_none() {
                preview.is_whole = true;
                break;
            }
        }
        Ok(preview)
    }
}

/// Looks at the first records of a space.
async fn look(
    space: &Space,
    mut each: impl AsyncFnMut(&mut Preview, &Record) -> Result<()>,
) -> Result<Preview> {
    let mut preview = Preview::default();
    let mut position = None;
    while preview.rows < Preview::ROWS_MAX {
        let walked = space.walk_on(position, RECORDS_PER_PAGE).await?;
        preview.rows += count(walked.records.len());
        for record in &walked.records {
            each(&mut preview, record).await?;
        }
        position = walked.position;
        if position.is_none() {
            preview.is_whole = true;
            break;
        }
    }
    Ok(preview)
}
