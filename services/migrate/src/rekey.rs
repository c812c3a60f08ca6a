//! Giving records other keys.

mod moves;

use std::collections::BTreeMap;

use jiff::Timestamp;
use keyward_engine::Tier;
use keyward_key::{Bindings, Key, Pattern, PatternSet, SegmentType, SegmentValue};
use keyward_records::{Caller, Record, Records, Relocated, Space};
use keyward_schema::{FieldPath, Space as Declaration};
use serde_json::value::RawValue;

use crate::definition::Source;
use crate::edit;
use crate::error::{Error, Result};
use crate::index::count;
use crate::ledger::Phase;
use crate::migrator::Run;

/// Where records come from, and where they go.
pub(crate) struct Rekeying {
    pub from: Space,
    pub to: Space,
    /// For each variable of the new key.
    sources: BTreeMap<String, (SegmentType, From)>,
}

enum From {
    Variable(String),
    Field(FieldPath),
}

impl Rekeying {
    /// Refuses what cannot be done as it is said.
    pub fn new(
        records: &Records,
        space: &str,
        from: &str,
        to: &str,
        sources: &BTreeMap<String, Source>,
    ) -> Result<Self> {
        let target = records.space(space, &Caller::operator())?;
        let declared = &target.declaration().key;
        if declared.as_str() != to {
            let message = format!("the keys of {space} are {declared}, not {to}");
            return Err(Error::Refused(message));
        }
        let old = Pattern::parse(from).map_err(|error| Error::Refused(error.to_string()))?;
        let both = PatternSet::new([old.clone(), declared.clone()]);
        both.map_err(|error| Error::Refused(error.to_string()))?;
        let mut known = BTreeMap::new();
        for variable in declared.variables() {
            let same = || Source::Variable(variable.name.clone());
            let source = match sources.get(&variable.name).cloned().unwrap_or_else(same) {
                Source::Variable(name) if old.variables().any(|old| old.name == name) => {
                    From::Variable(name)
                }
                Source::Variable(name) => {
                    let (variable, from) = (variable.name.clone(), old.to_string());
                    return Err(Error::NoSource { variable, source_name: name, from });
                }
                Source::Field(field) => From::Field(
                    field
                        .parse()
                        .map_err(|error| Error::Refused(format!("{}: {error}", variable.name)))?,
                ),
            };
            known.insert(variable.name.clone(), (variable.kind, source));
        }
        if let Some(name) = sources.keys().find(|name| !known.contains_key(*name)) {
            return Err(Error::Refused(format!("the new key {declared} has no variable {name}")));
        }
        // A declared space with that pattern has rules of its own.
        let declared_from = records.declarations().find(|space| space.key == old);
        let from = match declared_from {
            Some(declared) => records.space(&declared.name, &Caller::operator())?,
            None => records.former(space, old)?,
        };
        let rekeying = Self { from, to: target, sources: known };
        rekeying.refuse_unique()?;
        Ok(rekeying)
    }

    /// Whether records move in commits of several keys.
    fn is_atomic(&self) -> bool {
        self.to.guarantee() == Tier::Atomic
    }

    /// Where commits take one key, the old record would hold its unique values against the new one;
    /// and no order of single writes hands them over (`docs/decisions/0005-…`).
    fn refuse_unique(&self) -> Result<()> {
        let unique = self.to.declaration().indexes.iter().find(|index| index.is_unique());
        match unique {
            Some(index) if self.to.guarantee() != Tier::Atomic => Err(Error::Refused(format!(
                "the unique index {} cannot follow on this engine: drop it, and add it afterwards",
                index.name
            ))),
            _ => Ok(()),
        }
    }

    /// The new key of a record, or why there is none.
    pub fn new_key(&self, record: &Record) -> std::result::Result<Key, String> {
        let old = self.from.declaration().key.parse_key(&record.key);
        let old = old.ok_or_else(|| "the key does not have the old shape".to_owned())?;
        let mut values = Bindings::new();
        for (name, (kind, source)) in &self.sources {
            let value = match source {
                From::Variable(variable) => old.get(variable).cloned().map(|v| fitted(v, *kind)),
                From::Field(field) => edit::field(&record.value, field).map(|text| {
                    segment(&text, *kind)
                        .ok_or_else(|| format!("the field {field} is no {kind} for {name}"))
                }),
            };
            if let Some(value) = value {
                values = values.with(name, value?);
            }
        }
        self.to.declaration().key.build(&values).map_err(|error| error.to_string())
    }

    /// Whether a new key is still that of a record: others may have changed what it was made of.
    fn is_new_key(&self, record: &Record, new: &Key) -> bool {
        self.new_key(record).is_ok_and(|now| now == *new)
    }
}

/// A value of the old key as the new variable's type takes it.
fn fitted(value: SegmentValue, kind: SegmentType) -> std::result::Result<SegmentValue, String> {
    match (kind, value) {
        (SegmentType::U64, SegmentValue::Text(text)) => {
            let number = text.parse().map_err(|_| format!("{text:?} is no whole number"))?;
            Ok(SegmentValue::U64(number))
        }
        (SegmentType::Time, SegmentValue::Text(text)) => {
            let at: Timestamp = text.parse().map_err(|_| format!("{text:?} is no time"))?;
            Ok(SegmentValue::Time(at))
        }
        (SegmentType::Text, value @ (SegmentValue::U64(_) | SegmentValue::Time(_))) => {
            Ok(SegmentValue::Text(value.to_string()))
        }
        (_, value) => Ok(value),
    }
}

/// A field's JSON as a segment.
fn segment(field: &RawValue, kind: SegmentType) -> Option<SegmentValue> {
    let text: String = match serde_json::from_str(field.get()) {
        Ok(text) => text,
        // A number stands for its digits; nothing else is a segment.
        Err(_) if field.get().starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            field.get().to_owned()
        }
        Err(_) => return None,
    };
    if text.is_empty() {
        return None;
    }
    fitted(SegmentValue::Text(text), kind).ok()
}

pub(crate) async fn run(run: &mut Run<'_>, rekeying: &Rekeying) -> Result<()> {
    loop {
        match run.phase() {
            Phase::Walk => {
                walk(run, rekeying).await?;
                run.enter(Phase::CheckRecords).await?;
            }
            Phase::CheckRecords => {
                check(run, rekeying).await?;
                return run.end().await;
            }
            Phase::End => return Ok(()),
            _ => {
                take_over(run.records(), rekeying.to.declaration()).await?;
                run.enter(Phase::Walk).await?;
            }
        }
    }
}

/// From now on the store's indexes of the space are of its new keys; those of records that are still
/// to be moved belong to them.
async fn take_over(records: &Records, space: &Declaration) -> Result<()> {
    let change = records.change_catalog(|content| {
        if let Some(keys) = content.spaces.get_mut(&space.name) {
            *keys = space.key.to_string();
        }
        Ok(())
    });
    change.await?;
    Ok(())
}

/// Moves all records, a page at a time. Those that move are counted by the commit that moves them, the
/// others at the end of the page: whoever goes on after a kill finds the ones that moved counted and gone,
/// and the others where they were.
async fn walk(run: &mut Run<'_>, rekeying: &Rekeying) -> Result<()> {
    loop {
        let position = run.migration().position()?;
        let walked = rekeying.from.walk_on(position, run.page()).await?;
        let records = walked.records.len();
        let mut stayed = moves::Stayed::default();
        let mut moves = Vec::with_capacity(records);
        for record in &walked.records {
            match rekeying.new_key(record) {
                Ok(new) => moves.push((record.key.clone(), new)),
                Err(message) => stayed.problem(&record.key, message),
            }
        }
        match rekeying.is_atomic() {
            true => moves::together(run, rekeying, &moves, &mut stayed).await?,
            false => moves::one_by_one(run, rekeying, &moves, &mut stayed).await?,
        }
        stayed.count(run);
        match walked.position {
            Some(position) => run.reach(Some(&position), records).await?,
            None => return Ok(()),
        }
    }
}

/// The key that a record was moved to, if it is still there; or why it cannot be.
pub(crate) async fn relocate(
    rekeying: &Rekeying,
    record: &Record,
) -> Result<std::result::Result<Option<Key>, String>> {
    let new = match rekeying.new_key(record) {
        Ok(new) => new,
        Err(message) => return Ok(Err(message)),
    };
    match rekeying.from.relocate(&record.key, &rekeying.to, &new).await {
        Ok(Relocated::Moved) => Ok(Ok(Some(new))),
        Ok(Relocated::Absent | Relocated::Changed) => Ok(Ok(None)),
        Ok(Relocated::Taken) => Ok(Err(moves::taken(&new))),
        Err(error) if error.is_of_the_record() => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Counts what still has an old key and is not told of yet: written meanwhile by somebody who does
/// not know the new pattern. The count is kept in the ledger with the position.
async fn check(run: &mut Run<'_>, rekeying: &Rekeying) -> Result<()> {
    loop {
        let position = run.migration().position()?;
        let walked = rekeying.from.walk_on(position, run.page()).await?;
        let left = walked.records.len();
        run.migration().counts.checked += count(left);
        match walked.position {
            Some(position) => run.reach(Some(&position), left).await?,
            None => break,
        }
    }
    let counts = run.migration().counts;
    if counts.checked > counts.problems {
        let message = format!("{} records still have the old shape; run it again", counts.checked);
        run.migration().problem(rekeying.from.declaration().key.to_string(), message);
    }
    Ok(())
}
