//! What is done in the same commit as a change.

use std::collections::HashSet;
use std::sync::Arc;

use keyward_engine::{Check, Commit, Entry, Error as StoreError, ErrorKind, Expect, Tier, Write};
use keyward_key::Key;

use crate::catalog::Snapshot;
use crate::space::Space;
use crate::{Error, Result};

/// What below `system` is kept by records themselves.
const KEPT_BY_RECORDS: [&str; 3] = ["catalog", "history", "cursor-secret"];

impl Space {
    /// The same space with a rider: checks and writes of other keys of the store that every change
    /// made through it carries in its one commit, such as a message to be enqueued, the mark of a
    /// request that was served, or the fence of a lock. It takes the place of an earlier rider.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use keyward_engine::{Commit, Expect, Json, Put, Store, SystemClock};
    /// use keyward_key::{Bindings, Key};
    /// use keyward_records::{Caller, Draft, Error, Records};
    ///
    /// # let schema = keyward_schema::Schema::parse(
    /// #     "[stores.app]\n[spaces.notes]\nkey = 'user:{user}:notes:{note}'\nownership = 'user'\n",
    /// #     "schema.toml",
    /// # )?;
    /// # let store = Store::new(keyward_memory::Memory::new());
    /// # let records = Records::open(store, schema.spaces, SystemClock)?;
    /// let notes = records.space("notes", &Caller::user("ada"))?;
    /// let note = notes.key(Bindings::new().with("note", "n1"))?;
    /// let mark = Key::parse("served:request-17")?;
    /// let once = Commit::new()
    ///     .check(mark.clone(), Expect::Absent)
    ///     .put(mark, Put::new(Json::parse("true")?));
    ///
    /// let notes = notes.with_rider(once);
    /// let draft = Draft::new(Json::parse(r#"{"title":"hi"}"#)?);
    /// assert!(notes.put(&note, draft.clone()).await?.version().is_some());
    /// // The same request again: it was served.
    /// let again = notes.put(&note, draft).await.unwrap_err();
    /// assert!(matches!(again, Error::RiderRefused { failed } if failed == [0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The change and the rider are done together or not at all:
    ///
    /// - A change that comes to nothing ([`Written::Conflicted`](crate::Written::Conflicted),
    ///   [`Written::Unchanged`](crate::Written::Unchanged)) leaves the rider undone too. Of changes
    ///   made [together](Space::together), one that is made is enough.
    /// - If a check of the rider does not hold, nothing was changed, and the answer is
    ///   [`Error::RiderRefused`]. It is told before anything else that does not hold: a request that
    ///   comes a second time learns that it was served, not that the record exists by now.
    /// - If the record changes meanwhile, both are tried again, as without a rider.
    /// - After [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) both are done, or neither. It is not
    ///   tried again here. Whoever does, with a rider that makes what it checks to be absent, finds
    ///   out: both are done once, and `RiderRefused` may mean that it was the first time.
    ///
    /// Every change is one commit with the rider, so changes made with [`Space::each`] carry it each.
    /// Reading carries none, also where it prolongs a record's life. The version of what the
    /// rider writes is that of the record.
    ///
    /// **The rider knows no callers**: no owner rule is asked about its keys. Make it of what the
    /// program decides, never of what a request says.
    ///
    /// A change is refused, and nothing done, with
    /// - [`Error::BadChange`], if the rider writes index entries or what is kept about records, a
    ///   record of a space with indexes or history (they would not follow), or a record of the same
    ///   change; if it checks what the change checks itself; and if the change is a
    ///   [relocation](Space::relocate);
    /// - [`LimitExceeded`](ErrorKind::LimitExceeded), if both together are more than a commit takes;
    /// - [`Unsupported`](ErrorKind::Unsupported), where commits have one key: on engines of the
    ///   recoverable and the advisory tier.
    #[must_use]
    pub fn with_rider(mut self, rider: Commit) -> Self {
        let is_empty = rider.checks.is_empty() && rider.writes.is_empty();
        self.rider = (!is_empty).then(|| Arc::new(rider));
        self
    }

    /// The same space, whose changes carry nothing.
    pub(crate) fn without_rider(&self) -> Self {
        Self { rider: None, ..self.clone() }
    }

    /// Refuses a rider where commits have one key.
    pub(crate) fn admit_rider(&self) -> Result<()> {
        let capabilities = self.shared.store.capabilities();
        if self.rider.is_none() || capabilities.tier() == Tier::Atomic {
            return Ok(());
        }
        let message = format!(
            "the {} engine cannot change a record together with other keys: its commits have one \
             key, so they carry no rider",
            capabilities.engine
        );
        Err(StoreError::new(ErrorKind::Unsupported, message).into())
    }

    /// An error if a check of the rider does not hold now: for a change that comes to nothing, and
    /// so is not told by a commit.
    pub(crate) async fn check_rider(&self) -> Result<()> {
        let Some(rider) = self.rider.as_ref().filter(|rider| !rider.checks.is_empty()) else {
            return Ok(());
        };
        let keys: Vec<Key> = rider.checks.iter().map(|check| check.key.clone()).collect();
        let entries = self.shared.store.get_many(&keys).await?;
        let checks = rider.checks.iter().zip(&entries).enumerate();
        let failed: Vec<usize> = checks
            .filter(|(_, (check, entry))| !holds(check, entry.as_ref()))
            .map(|(at, _)| at)
            .collect();
        if failed.is_empty() { Ok(()) } else { Err(Error::RiderRefused { failed }) }
    }

    /// The commit of a change with the rider's checks and writes after its own, and how many checks
    /// that are.
    pub(crate) fn join_rider(
        &self,
        catalog: &Snapshot,
        mut commit: Commit,
    ) -> Result<(Commit, usize)> {
        let Some(rider) = &self.rider else {
            return Ok((commit, 0));
        };
        let checked: HashSet<&Key> = commit.checks.iter().map(|check| &check.key).collect();
        let written: HashSet<&Key> = commit.writes.iter().map(Write::key).collect();
        for Check { key, .. } in &rider.checks {
            if checked.contains(key) {
                return Err(Error::BadChange(format!(
                    "the rider checks {key}, which the change checks itself: give the change a \
                     precondition instead"
                )));
            }
        }
        for key in rider.writes.iter().map(Write::key) {
            self.admit_ridden(catalog, key)?;
            if checked.contains(key) || written.contains(key) {
                return Err(Error::BadChange(format!(
                    "the rider writes {key}, which is a record of the change itself"
                )));
            }
        }
        commit.checks.extend(rider.checks.iter().cloned());
        commit.writes.extend(rider.writes.iter().cloned());
        Ok((commit, rider.checks.len()))
    }

    /// Refuses what a rider must not write.
    fn admit_ridden(&self, catalog: &Snapshot, key: &Key) -> Result<()> {
        let mut segments = key.segments();
        let kept = match segments.next().as_deref() {
            Some("index") => true,
            Some("system") => {
                segments.next().is_some_and(|second| KEPT_BY_RECORDS.contains(&&*second))
            }
            _ => false,
        };
        if kept {
            let message = format!("the rider writes {key}, which records keep by themselves");
            return Err(Error::BadChange(message));
        }
        let followed = self.shared.declarations().find(|space| {
            let follows = space.history.is_some()
                || !space.indexes.is_empty()
                || !catalog.kept(&space.name).is_empty();
            follows && space.key.matches(key)
        });
        match followed {
            None => Ok(()),
            Some(space) => Err(Error::BadChange(format!(
                "the rider writes {key}, a record of the space {}, whose indexes or history would \
                 not follow: change it through its space",
                space.name
            ))),
        }
    }
}

fn holds(check: &Check, entry: Option<&Entry>) -> bool {
    match &check.expect {
        Expect::Absent => entry.is_none(),
        Expect::Version(version) => entry.is_some_and(|entry| entry.version == *version),
    }
}
