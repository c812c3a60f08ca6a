//! Walking through all records of a space, and giving them other keys.

use keyward_engine::{Commit, Version, Want};
use keyward_key::{Key, Pattern};
use keyward_schema::Ownership;

use crate::access::{Access, Act, Admitted};
use crate::change::Current;
use crate::records::Records;
use crate::space::Space;
use crate::walk::Walk;
use crate::{Caller, Error, Record, Result, write};

/// What became of a record that was to have another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relocated {
    /// It has the new key.
    Moved,
    /// There is no such record any more.
    Absent,
    /// A record that says something else has the new key; both stay as they are.
    Taken,
    /// It has changed, and does not belong at the new key any more: see [`Belongs`]. It stays.
    Changed,
}

/// Whether a record, as it is when it moves, belongs at the new key. Whoever makes that key of the record's
/// value asks this, since others may change the value in between.
pub type Belongs<'f> = dyn Fn(&Record, &Key) -> bool + Send + Sync + 'f;

/// What became of records that were to have other keys together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Together {
    /// The first of them, as many as there are outcomes: those that moved, moved in one commit.
    Done {
        /// What became of each.
        outcomes: Vec<Relocated>,
        /// The versions of what was written along with them; nothing if none of them moved.
        along: Vec<Option<Version>>,
    },
    /// Nothing was written: others are at some of the first so many, which have to be moved one by one.
    OneByOne(usize),
}

/// Some records of a space, in the order of a walk through all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walked {
    /// The records.
    pub records: Vec<Record>,
    /// Where to go on; `None` at the end. There may be no records, and still a position.
    pub position: Option<Vec<u8>>,
}

impl Space {
    /// The next records after a position, whoever owns them: for those who run the store. At most
    /// `limit`. A record that stays is met once; one that comes or goes meanwhile may be missed.
    pub async fn walk_on(&self, position: Option<Vec<u8>>, limit: usize) -> Result<Walked> {
        self.admit_operator()?;
        let walk = Walk::whole(&self.shared.store, &self.access.space.key, Want::Entries)?;
        let limit = limit.max(1);
        let walked = walk.next(position, limit, limit.saturating_mul(4)).await?;
        let mut records = Vec::with_capacity(walked.rows.len());
        for row in walked.rows {
            let Some(entry) = row.entry else { continue };
            records.extend(Current::new(row.key, entry)?.live());
        }
        Ok(Walked { records, position: walked.position })
    }

    /// Gives a record another key, of this space or of another one of the same store, with its
    /// value, metadata and end. Index entries of both spaces follow, and so do the versions that
    /// history keeps, with their numbers, if both spaces keep history: a move is no version of its
    /// own. Where the new key has an equal record already, that one's history stays as it is, and
    /// the old one's stays where it is.
    ///
    /// In one commit where the engine can; only the oldest versions go ahead in commits of their own
    /// if all do not fit one, and come back if the record then stays. Elsewhere the new record comes first, and whoever does it again after
    /// a crash goes on. There, a unique index that both have would hold the old record against the
    /// new one: that is refused.
    pub async fn relocate(&self, key: &Key, to: &Space, new: &Key) -> Result<Relocated> {
        let (outcome, _) = self.relocate_along(key, to, new, &|_, _| true, &Commit::new()).await?;
        Ok(outcome)
    }

    /// The same for a record that belongs at the new key, or [`Relocated::Changed`]. Checks and writes of
    /// others are in the commit that moves the record, where the engine takes commits of several keys; gives
    /// the versions of these writes. They are not written if the record does not move.
    /// [`Error::RiderRefused`] if one of the checks does not hold.
    pub async fn relocate_along(
        &self,
        key: &Key,
        to: &Space,
        new: &Key,
        belongs: &Belongs<'_>,
        along: &Commit,
    ) -> Result<(Relocated, Vec<Option<Version>>)> {
        let (old, new) = self.admit_move(key, to, new)?;
        write::relocate(self, &old, to, &new, belongs, along).await
    }

    /// Gives several records other keys as [`Space::relocate_along`] does, in one commit: as many as fit
    /// it, from the first on. `along` says what else is written with so many that move. Refused where
    /// commits take one key. An error is about the first record, or about all of them.
    pub async fn relocate_together(
        &self,
        to: &Space,
        moves: &[(Key, Key)],
        belongs: &Belongs<'_>,
        along: &(dyn Fn(usize) -> Result<Commit> + Send + Sync),
    ) -> Result<Together> {
        let mut admitted = Vec::with_capacity(moves.len());
        for (key, new) in moves {
            match self.admit_move(key, to, new) {
                Ok(both) => admitted.push(both),
                // It is told when it is the first.
                Err(_) if !admitted.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        write::relocate_together(self, to, &admitted, belongs, along).await
    }

    fn admit_move(&self, key: &Key, to: &Space, new: &Key) -> Result<(Admitted, Admitted)> {
        if key == new {
            return Err(Error::BadChange(format!("{key} is the key it has already")));
        }
        if self.rider.is_some() || to.rider.is_some() {
            let message =
                "a record that gets another key carries no rider: its versions may go ahead";
            return Err(Error::BadChange(message.to_owned()));
        }
        Ok((self.access.admit(key, Act::Write)?, to.access.admit(new, Act::Write)?))
    }

    pub(crate) fn admit_operator(&self) -> Result<()> {
        if self.access.caller.is_operator() {
            return Ok(());
        }
        let rule = "only those who run the store touch everybody's records".to_owned();
        Err(Error::Forbidden { space: self.access.space.name.clone(), rule })
    }
}

impl Records {
    /// A space as it was while its keys had another pattern: the same indexes and values. If the
    /// owner is not the first variable of that pattern, nobody owned its records.
    pub fn former(&self, name: &str, pattern: Pattern) -> Result<Space> {
        let mut space = self.space(name, &Caller::operator())?;
        let mut declaration = space.access.space;
        let owner = declaration.ownership.owner();
        let first = pattern.variables().next().map(|variable| variable.name.as_str());
        if owner.is_none() || owner != first {
            declaration.ownership = Ownership::Shared;
        }
        declaration.key = pattern;
        space.access = Access::new(declaration, Caller::operator())?;
        Ok(space)
    }
}
