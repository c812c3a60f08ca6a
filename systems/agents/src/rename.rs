//! Giving an entry another key.

use keyward_engine::{Commit, Entry, Expiry, Put, Tier};
use keyward_key::Key;
use keyward_records::Relocated;

use crate::namespace::Namespace;
use crate::track::Line;
use crate::{Error, Result, places};

impl Namespace {
    /// Gives an entry another key of this namespace, with its history and what is known about its
    /// accesses. Nothing is changed if another entry has that key.
    ///
    /// Accesses that happen meanwhile, and those that other processes have not written yet, are not
    /// counted: they belong to a key that has no entry any more.
    pub async fn rename(&self, key: &str, new: &str) -> Result<Relocated> {
        if key == new {
            return Err(Error::Invalid(format!("{key:?} is the key it has already")));
        }
        let (from, to) = (self.place(key)?, self.place(new)?);
        // What is gathered under the old key would find no entry there. What cannot be written now is
        // no reason to refuse.
        let _ = self.agents.flush().await;
        let known = self.shared().tracker.born(&from);
        // Where a row is a part of its entry, it is gone with it.
        let row = match self.space.guarantee() {
            Tier::Atomic => None,
            _ => self.shared().store().get(&places::access(&from)).await?,
        };
        let relocated = self.space.relocate(&from, &self.space, &to).await?;
        let moved = relocated == Relocated::Moved;
        if moved {
            self.note_removal(&from);
            self.move_accesses(&places::access(&from), &places::access(&to), row).await?;
            self.shared().tracker.forget(&from, &known);
        }
        self.log(Line { found: Some(moved), ..Line::of("rename").key(key) });
        Ok(relocated)
    }

    /// What is known about accesses follows the entry. It names the moment that the entry was made, so
    /// what is left behind by a crash is not taken for another entry's.
    async fn move_accesses(&self, from: &Key, to: &Key, before: Option<Entry>) -> Result<()> {
        let store = self.shared().store();
        let Some(row) = store.get(from).await?.or(before) else { return Ok(()) };
        let put = Put { expiry: row.expires.map(Expiry::At), ..Put::new(row.value) };
        if store.capabilities().tier() == Tier::Atomic {
            // It has no check that could refuse it.
            let _done =
                store.commit(Commit::new().put(to.clone(), put).delete(from.clone())).await?;
        } else {
            store.put(to.clone(), put).await?;
            store.delete(from.clone()).await?;
        }
        Ok(())
    }
}
