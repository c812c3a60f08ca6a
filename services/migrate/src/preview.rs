//! What a migration would do, without doing it.

use keyward_engine::Scan;
use keyward_key::{Key, KeyRange, Prefix};
use keyward_records::{Record, Records};
use keyward_schema::Index;

use crate::adopt::{self, Claims, Comparing, Verdict};
use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::index::{self, count};
use crate::ledger::Problem;
use crate::migrator::{Change, Migrator, RECORDS_PER_PAGE};
use crate::rehearsal::Rehearsal;
use crate::rekey::{self, Rekeying};
use crate::transform;

/// What a migration would do, as far as was looked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preview {
    /// How many records it would look at; for an index that is dropped, how many entries it would
    /// remove.
    pub rows: u64,
    /// How many records it would change.
    pub changed: u64,
    /// Whether that is all of them: a preview ends after the page that reaches
    /// [`Preview::ROWS_MAX`] or [`Preview::BYTES_MAX`].
    pub is_whole: bool,
    /// Some of the changes, at most [`Preview::EXAMPLES_MAX`]: what it is, what it becomes.
    pub examples: Vec<(String, String)>,
    /// How many records it could not change.
    pub problem_count: u64,
    /// The first of them, at most [`Preview::PROBLEMS_MAX`].
    pub problems: Vec<Problem>,
}

impl Preview {
    /// How many rows are looked at.
    pub const ROWS_MAX: u64 = 10_000;
    /// How many bytes of values are looked at.
    pub const BYTES_MAX: usize = 256 << 20;
    /// How many examples are given.
    pub const EXAMPLES_MAX: usize = 5;
    /// How many problems are named; all are counted.
    pub const PROBLEMS_MAX: usize = 1_000;

    fn whole() -> Self {
        Self { is_whole: true, ..Self::default() }
    }

    fn example(&mut self, old: String, new: String) {
        self.changed += 1;
        if self.examples.len() < Self::EXAMPLES_MAX {
            self.examples.push((old, new));
        }
    }

    fn problem(&mut self, key: &Key, message: String) {
        self.problem_count += 1;
        if self.problems.len() < Self::PROBLEMS_MAX {
            self.problems.push(Problem { key: key.to_string(), message });
        }
    }
}

impl Migrator {
    /// What a migration would do. It is tried, with the checks of the real run, on a copy of the first
    /// records in `scratch`: the same spaces in an empty store, of the same tier and with the same
    /// limits, that is thrown away afterwards. Nothing else is written. What a change of values would
    /// do is told by [`Migrator::preview_transform`].
    ///
    /// [`Error::Refused`] for what would be refused, and for a `scratch` that holds anything.
    pub async fn preview(&self, definition: &Definition, scratch: &Records) -> Result<Preview> {
        match definition {
            Definition::AddIndex { space, index } | Definition::RebuildIndex { space, index } => {
                self.preview_index(space, index, scratch).await
            }
            Definition::AdoptIndex { space, index, set_aside } => {
                self.preview_adoption(space, index, *set_aside).await
            }
            Definition::DropIndex { index, .. } => self.preview_drop(index).await,
            Definition::Rekey { space, from, to, sources } => {
                self.refuse_advisory("moving records")?;
                let real = Rekeying::new(&self.records, space, from, to, sources)?;
                let tried = Rekeying::new(scratch, space, from, to, sources)?;
                self.preview_rekey(&real, &tried, scratch).await
            }
            Definition::Transform { .. } => {
                let message = "a change of values needs the function that makes it".to_owned();
                Err(Error::Refused(message))
            }
        }
    }

    /// What a change of values would do, tried as [`Migrator::preview`] does. The function runs, on
    /// records whose versions are those of the copy.
    pub async fn preview_transform(
        &self,
        space: &str,
        change: &mut Change<'_>,
        scratch: &Records,
    ) -> Result<Preview> {
        let real = transform::space(&self.records, space)?;
        self.refuse_advisory("changing values")?;
        let mut preview = Preview::whole();
        let mut rehearsal = Rehearsal::new(&self.records, scratch).await?;
        let records = rehearsal.take(&real, &mut preview).await?;
        rehearsal.index(space).await?;
        preview.rows = count(records.len());
        let tried = transform::space(scratch, space)?;
        for record in &records {
            let mut new = None;
            let mut noted = |record: &Record| {
                new = change(record)?;
                Ok(new.clone())
            };
            match transform::apply(&tried, &record.key, &mut noted).await? {
                Ok(true) => {
                    let new = new.map(|new| new.to_string()).unwrap_or_default();
                    preview.example(record.value.to_string(), new);
                }
                Ok(false) => {}
                Err(message) => preview.problem(&record.key, message),
            }
        }
        Ok(preview)
    }

    async fn preview_index(
        &self,
        space: &str,
        index: &Index,
        scratch: &Records,
    ) -> Result<Preview> {
        let real = transform::space(&self.records, space)?;
        index::refuse_foreign(&self.records, &self.records.catalog().await?, space, index)?;
        let mut preview = Preview::whole();
        let mut rehearsal = Rehearsal::new(&self.records, scratch).await?;
        preview.rows = count(rehearsal.take(&real, &mut preview).await?.len());
        index::announce(scratch, space, index).await?;
        rehearsal.build(&index.name, |key, message| preview.problem(key, message)).await?;
        Ok(preview)
    }

    /// Only reads, so it is done on the store itself.
    async fn preview_adoption(
        &self,
        space: &str,
        index: &Index,
        set_aside: bool,
    ) -> Result<Preview> {
        let mut preview = Preview::whole();
        let comparing = Comparing::new(&self.records, space, index)?;
        let mut after = None;
        loop {
            let (judged, next) = comparing.entries(after, RECORDS_PER_PAGE).await?;
            for entry in judged {
                let (key, value) = (&entry.key, &entry.entry.value);
                match entry.verdict {
                    Verdict::Adopted => {}
                    Verdict::Fits { record } => {
                        preview
                            .example(format!("{key} = {value}"), format!("{key} = \"{record}\""));
                    }
                    Verdict::Differs { .. } if set_aside => {
                        let aside = adopt::aside(key);
                        preview.example(format!("{key} = {value}"), format!("{aside} = {value}"));
                    }
                    Verdict::Differs { reason, .. } => preview.problem(key, reason),
                }
            }
            after = next;
            if after.is_none() {
                break;
            }
            if preview.changed >= Preview::ROWS_MAX {
                preview.is_whole = false;
                return Ok(preview);
            }
        }
        let (mut claims, mut position) = (Claims::default(), None);
        loop {
            let page = comparing.records(position, RECORDS_PER_PAGE, &mut claims).await?;
            preview.rows += count(page.records);
            page.problems.into_iter().for_each(|(key, reason)| preview.problem(&key, reason));
            position = page.position;
            if position.is_none() {
                return Ok(preview);
            }
            if preview.rows >= Preview::ROWS_MAX {
                preview.is_whole = false;
                return Ok(preview);
            }
        }
    }

    async fn preview_rekey(
        &self,
        real: &Rekeying,
        tried: &Rekeying,
        scratch: &Records,
    ) -> Result<Preview> {
        let mut preview = Preview::whole();
        let mut rehearsal = Rehearsal::new(&self.records, scratch).await?;
        let records = rehearsal.take(&real.from, &mut preview).await?;
        rehearsal.take(&real.to, &mut preview).await?;
        rehearsal.index(&real.to.declaration().name).await?;
        preview.rows = count(records.len());
        for record in &records {
            match rekey::relocate(tried, record).await? {
                Ok(Some(new)) => preview.example(record.key.to_string(), new.to_string()),
                Ok(None) => {}
                Err(message) => preview.problem(&record.key, message),
            }
        }
        Ok(preview)
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
