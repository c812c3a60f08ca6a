//! Moves the records of one page.

use keyward_engine::Commit;
use keyward_key::Key;
use keyward_records::{Error as RecordsError, Record, Relocated, Together};

use super::Rekeying;
use crate::error::{Error, Result};
use crate::index::count;
use crate::migrator::Run;

/// How often a new key is made again for a record that others keep changing.
const ATTEMPTS_MAX: usize = 64;

/// Records of a page that did not move.
#[derive(Default)]
pub(super) struct Stayed {
    records: usize,
    problems: Vec<(Key, String)>,
}

impl Stayed {
    pub fn problem(&mut self, key: &Key, message: String) {
        self.records += 1;
        self.problems.push((key.clone(), message));
    }

    fn absent(&mut self) {
        self.records += 1;
    }

    pub fn count(self, run: &mut Run<'_>) {
        run.migration().counts.records += count(self.records);
        // In the order of the walk, whatever was found out first.
        let mut problems = self.problems;
        problems.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (key, message) in problems {
            run.problem(&key, message);
        }
    }
}

pub(super) fn taken(new: &Key) -> String {
    format!("{new} holds another record")
}

/// Moves records in as few commits as they fit in. One that was changed since the walk read it, so that it
/// belongs elsewhere, is moved by itself.
pub(super) async fn together(
    run: &mut Run<'_>,
    rekeying: &Rekeying,
    mut moves: &[(Key, Key)],
    stayed: &mut Stayed,
) -> Result<()> {
    let Rekeying { from, to, .. } = rekeying;
    let belongs = |record: &Record, new: &Key| rekeying.is_new_key(record, new);
    while let Some(first) = moves.first() {
        let held = run.held();
        let noted = |moved: usize| match held.moving(moved) {
            Ok((_, commit)) => Ok(commit),
            Err(error) => Err(RecordsError::Damaged(error.to_string())),
        };
        match from.relocate_together(to, moves, &belongs, &noted).await {
            Ok(Together::Done { outcomes, along }) => {
                let moved = outcomes.iter().filter(|it| **it == Relocated::Moved).count();
                if moved > 0 {
                    let (migration, _) = run.held().moving(moved)?;
                    run.moved(migration, along);
                }
                let (done, rest) = moves.split_at(outcomes.len());
                for ((key, new), outcome) in done.iter().zip(&outcomes) {
                    match outcome {
                        Relocated::Moved => {}
                        Relocated::Absent => stayed.absent(),
                        Relocated::Taken => stayed.problem(key, taken(new)),
                        Relocated::Changed => alone(run, rekeying, key, None, stayed).await?,
                    }
                }
                moves = rest;
            }
            Ok(Together::OneByOne(records)) => {
                let (contended, rest) = moves.split_at(records.clamp(1, moves.len()));
                for (key, new) in contended {
                    alone(run, rekeying, key, Some(new), stayed).await?;
                    run.beat().await?;
                }
                moves = rest;
            }
            Err(error) if error.is_of_the_record() => {
                stayed.problem(&first.0, error.to_string());
                moves = &moves[1..];
            }
            Err(error) => return Err(overtaken(run, error)),
        }
        run.beat().await?;
    }
    Ok(())
}

/// Moves records one after the other where commits take one key.
pub(super) async fn one_by_one(
    run: &mut Run<'_>,
    rekeying: &Rekeying,
    moves: &[(Key, Key)],
    stayed: &mut Stayed,
) -> Result<()> {
    for (key, new) in moves {
        alone(run, rekeying, key, Some(new), stayed).await?;
        run.beat().await?;
    }
    Ok(())
}

/// Moves one record to the key that its value says when it moves; `walked` is what it said before, if that
/// is worth a try. It is counted by the commit that moves it; where commits take one key right afterwards,
/// so a kill between the two loses at most one.
async fn alone(
    run: &mut Run<'_>,
    rekeying: &Rekeying,
    key: &Key,
    walked: Option<&Key>,
    stayed: &mut Stayed,
) -> Result<()> {
    let Rekeying { from, to, .. } = rekeying;
    let belongs = |record: &Record, new: &Key| rekeying.is_new_key(record, new);
    let mut walked = walked.cloned();
    for _ in 0..ATTEMPTS_MAX {
        let new = match walked.take() {
            Some(new) => Ok(new),
            None => {
                // Not by `get`, which prolongs the life of records with a sliding end.
                let found = from.get_many(std::slice::from_ref(key)).await?.pop().flatten();
                let Some(record) = found else {
                    stayed.absent();
                    return Ok(());
                };
                rekeying.new_key(&record)
            }
        };
        let new = match new {
            Ok(new) => new,
            Err(message) => {
                stayed.problem(key, message);
                return Ok(());
            }
        };
        let (migration, along) = match rekeying.is_atomic() {
            true => run.held().moving(1)?,
            false => (run.held().moving(1)?.0, Commit::new()),
        };
        match from.relocate_along(key, to, &new, &belongs, &along).await {
            Ok((Relocated::Moved, versions)) if rekeying.is_atomic() => {
                run.moved(migration, versions);
            }
            Ok((Relocated::Moved, _)) => {
                *run.migration() = migration;
                run.note().await?;
            }
            Ok((Relocated::Absent, _)) => stayed.absent(),
            Ok((Relocated::Taken, _)) => stayed.problem(key, taken(&new)),
            Ok((Relocated::Changed, _)) => continue,
            Err(error) if error.is_of_the_record() => stayed.problem(key, error.to_string()),
            Err(error) => return Err(overtaken(run, error)),
        }
        return Ok(());
    }
    Err(RecordsError::Contended { key: key.clone(), attempts: ATTEMPTS_MAX }.into())
}

/// The only check that goes along with records is that of the ledger's row.
fn overtaken(run: &mut Run<'_>, error: RecordsError) -> Error {
    match error {
        RecordsError::RiderRefused { .. } => Error::Overtaken { id: run.migration().id.clone() },
        error => error.into(),
    }
}
