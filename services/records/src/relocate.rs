//! Walking through all records of a space, and giving them other keys.

use keyward_engine::Want;
use keyward_key::{Key, Pattern};
use keyward_schema::Ownership;

use crate::access::{Access, Act};
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
    /// if all do not fit one. Elsewhere the new record comes first, and whoever does it again after
    /// a crash goes on. There, a unique index that both have would hold the old record against the
    /// new one: that is refused.
    pub async fn relocate(&self, key: &Key, to: &Space, new: &Key) -> Result<Relocated> {
        if key == new {
            return Err(Error::BadChange(format!("{key} is the key it has already")));
        }
        if self.rider.is_some() || to.rider.is_some() {
            let message =
                "a record that gets another key carries no rider: its versions may go ahead";
            return Err(Error::BadChange(message.to_owned()));
        }
        let old = self.access.admit(key, Act::Write)?;
        let new = to.access.admit(new, Act::Write)?;
        write::relocate(self, &old, to, &new).await
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
