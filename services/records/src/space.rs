//! A space, as one caller reaches it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Commit, Entry, Json, Tier};
use keyward_key::{Bindings, Key};
use keyward_schema::{Share, Space as Declaration};

use crate::access::{Access, Act, Admitted, Sight};
use crate::catalog::Kept;
use crate::change::{
    Change, ChangeKind, Current, Draft, Next, Precondition, Record, Ttl, Update, Written,
};
use crate::index::{IndexEntry, Layout};
use crate::query::project;
use crate::records::Shared;
use crate::{Caller, Error, Merge, Result, write};

/// A space, as one caller reaches it: every operation is done in the caller's name, and refused where
/// the owner rule says so. Cheap to clone.
#[derive(Clone)]
pub struct Space {
    pub(crate) shared: Arc<Shared>,
    pub(crate) access: Access,
    /// What every change carries in its commit.
    pub(crate) rider: Option<Arc<Commit>>,
}

/// One of several changes made together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Sets a record.
    Put(Key, Draft),
    /// Merges a part into a record, keeping its metadata and end.
    Merge(Key, Merge, Precondition),
    /// Removes a record.
    Delete(Key, Precondition),
}

impl Space {
    /// What the schema says about it.
    pub fn declaration(&self) -> &Declaration {
        &self.access.space
    }

    /// Who is asking.
    pub fn caller(&self) -> &Caller {
        &self.access.caller
    }

    /// What answers from indexes are worth on this store's engine.
    pub fn guarantee(&self) -> Tier {
        self.shared.store.capabilities().tier()
    }

    /// The key for these values of the pattern's variables. The owner may be left out: it is the
    /// caller.
    pub fn key(&self, values: Bindings) -> Result<Key> {
        self.access.build(values)
    }

    /// Refuses a key that the caller may not write, as a change of it would be refused. For those who keep
    /// something about records elsewhere.
    pub fn admit_write(&self, key: &Key) -> Result<()> {
        self.access.admit(key, Act::Write).map(drop)
    }

    /// Refuses a key whose record the caller may not read as a whole. For those who show records as
    /// they are stored. Stricter than [`Space::get`], which shows others the shared fields.
    pub fn admit_read(&self, key: &Key) -> Result<()> {
        self.access.admit(key, Act::Read).map(drop)
    }

    /// A record. Of another user's record in a hybrid space, the fields that are shared, if a shared
    /// index finds it: what can be found can be read. One that no shared index finds is not there.
    ///
    /// Where the lifetime of the space, or of the record itself, is sliding and the record is past half
    /// of its life, its life begins anew first; that changes its version. If its life cannot be prolonged, the record is given
    /// all the same. Reading another user's record does not prolong its life.
    pub async fn get(&self, key: &Key) -> Result<Option<Record>> {
        let (target, sight) = self.access.admit_sight(key)?;
        if let Sight::Shared(share) = sight {
            let entry = self.shared.store.get(key).await?;
            return self.findable(target, share, entry);
        }
        match self.current(&target.key).await? {
            Some(current) if self.is_past_half(&current) => {
                if self.touch(target, &current).await.is_err() {
                    return Ok(current.live());
                }
                // Someone else may have changed it; then that was the touch.
                let again = self.current(&current.record.key).await?;
                Ok(again.and_then(Current::live))
            }
            current => Ok(current.and_then(Current::live)),
        }
    }

    /// Records, in the order of the keys, each as [`Space::get`] gives it. Reading many does not prolong
    /// anybody's life.
    pub async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        let admitted = keys.iter().map(|key| self.access.admit_sight(key));
        let admitted = admitted.collect::<Result<Vec<_>>>()?;
        let entries = self.shared.store.get_many(keys).await?;
        let records = admitted.into_iter().zip(entries).map(|((target, sight), entry)| {
            if let Sight::Shared(share) = sight {
                return self.findable(target, share, entry);
            }
            let current = entry.map(|entry| Current::new(target.key, entry)).transpose()?;
            Ok(current.and_then(Current::live))
        });
        records.collect()
    }

    /// What others see of a stored record, if one of the shared indexes has an entry of it.
    fn findable(
        &self,
        target: Admitted,
        share: &Share,
        entry: Option<Entry>,
    ) -> Result<Option<Record>> {
        let Some(entry) = entry else { return Ok(None) };
        let Admitted { key, owner } = target;
        let is_found = self.access.shared_indexes().any(|index| {
            // A value that cannot be indexed is in no index.
            let entries = Layout::new(index.clone()).entries(owner.as_deref(), &key, &entry.value);
            entries.is_ok_and(|entries| !entries.is_empty())
        });
        if !is_found {
            return Ok(None);
        }
        Ok(Record::stored(key, entry)?.map(|record| project::shared(record, share)))
    }

    /// Sets a record, if the draft's precondition holds.
    pub async fn put(&self, key: &Key, draft: Draft) -> Result<Written> {
        let Draft { value, metadata, ttl, expect } = draft;
        let kind = ChangeKind::Put { value, metadata };
        write::one(self, self.change(key, expect, ttl, kind)?).await
    }

    /// Sets a record that must not exist.
    pub async fn create(&self, key: &Key, draft: Draft) -> Result<Written> {
        self.put(key, draft.expecting(Precondition::Absent)).await
    }

    /// Merges a part into a record, which need not exist. Its metadata and its end stay.
    pub async fn merge(&self, key: &Key, merge: Merge, expect: Precondition) -> Result<Written> {
        let kind = ChangeKind::Merge(merge);
        write::one(self, self.change(key, expect, Ttl::Keep, kind)?).await
    }

    /// Sets a record to what `update` makes of it, keeping its metadata and its end; `None` leaves it
    /// as it is. `update` runs again if another change comes between. It is shown the record, so the
    /// caller must be allowed to read it as well as to write it.
    pub async fn update<'f>(
        &self,
        key: &Key,
        mut update: impl FnMut(Option<&Record>) -> Result<Option<Json>> + Send + Sync + 'f,
    ) -> Result<Written> {
        self.apply(Update::new(key.clone(), move |record| Ok(update(record)?.map(Next::new)))).await
    }

    /// Sets a record to what a function makes of it, which may also give it other metadata and another
    /// lifetime. As with [`Space::update`], the caller must be allowed to read it too.
    pub async fn apply(&self, update: Update<'_>) -> Result<Written> {
        write::one(self, self.updating(update)?).await
    }

    /// Sets several records to what functions make of them, all in one commit or, if one's
    /// precondition does not hold, none of them. Refused by engines that cannot.
    ///
    /// All functions run again if one of the records changes meanwhile.
    pub async fn apply_together(&self, updates: Vec<Update<'_>>) -> Result<Vec<Written>> {
        let changes = updates.into_iter().map(|update| self.updating(update));
        self.make_together(changes.collect::<Result<_>>()?).await
    }

    fn updating<'f>(&self, update: Update<'f>) -> Result<Change<'f>> {
        let Update { key, expect, update } = update;
        self.access.admit(&key, Act::Read)?;
        self.change(&key, expect, Ttl::Keep, ChangeKind::Update(update))
    }

    /// Removes a record and its index entries; removing what is not there changes nothing.
    pub async fn delete(&self, key: &Key, expect: Precondition) -> Result<Written> {
        write::one(self, self.change(key, expect, Ttl::Keep, ChangeKind::Delete)?).await
    }

    /// Makes changes to several records together, or none of them if one's precondition does not
    /// hold. Refused by engines that cannot.
    pub async fn together(&self, operations: Vec<Operation>) -> Result<Vec<Written>> {
        let changes = operations.into_iter().map(|operation| self.operation(operation));
        self.make_together(changes.collect::<Result<_>>()?).await
    }

    async fn make_together(&self, mut changes: Vec<Change<'_>>) -> Result<Vec<Written>> {
        let mut keys: Vec<&Key> = changes.iter().map(|change| &change.target.key).collect();
        keys.sort_unstable();
        if let Some(twice) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("{} is to be changed twice at once", twice[0]);
            return Err(Error::BadChange(message));
        }
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        write::together(self, &mut changes).await
    }

    /// Makes changes one after the other, each on its own: what was done stays done when a later one
    /// fails.
    pub async fn each(&self, operations: Vec<Operation>) -> Vec<Result<Written>> {
        let mut outcomes = Vec::with_capacity(operations.len());
        for operation in operations {
            outcomes.push(match self.operation(operation) {
                Ok(change) => write::one(self, change).await,
                Err(error) => Err(error),
            });
        }
        outcomes
    }

    fn operation(&self, operation: Operation) -> Result<Change<'static>> {
        match operation {
            Operation::Put(key, Draft { value, metadata, ttl, expect }) => {
                self.change(&key, expect, ttl, ChangeKind::Put { value, metadata })
            }
            Operation::Merge(key, merge, expect) => {
                self.change(&key, expect, Ttl::Keep, ChangeKind::Merge(merge))
            }
            Operation::Delete(key, expect) => {
                self.change(&key, expect, Ttl::Keep, ChangeKind::Delete)
            }
        }
    }

    fn change<'f>(
        &self,
        key: &Key,
        expect: Precondition,
        ttl: Ttl,
        kind: ChangeKind<'f>,
    ) -> Result<Change<'f>> {
        let target = self.access.admit(key, Act::Write)?;
        Ok(Change { target, expect, ttl, kind })
    }

    pub(crate) async fn current(&self, key: &Key) -> Result<Option<Current>> {
        let entry = self.shared.store.get(key).await?;
        entry.map(|entry| Current::new(key.clone(), entry)).transpose()
    }

    fn is_past_half(&self, current: &Current) -> bool {
        let Some(ttl) = self.sliding_ttl(current) else {
            return false;
        };
        let Some(expires) = current.record.expires else {
            return false;
        };
        let left = expires.duration_since(self.shared.clock.now());
        left.unsigned_abs() < ttl / 2 || left.is_negative()
    }

    fn sliding_ttl(&self, current: &Current) -> Option<Duration> {
        let declared = self.access.space.lifetime.filter(|lifetime| lifetime.sliding);
        let own = current.kept.ttl_ms.map(Duration::from_millis);
        own.or(declared.map(|lifetime| lifetime.ttl))
    }

    async fn touch(&self, target: Admitted, current: &Current) -> Result<Written> {
        let ttl = self.sliding_ttl(current).map_or(Ttl::Keep, Ttl::Sliding);
        let expect = Precondition::Version(current.record.version.clone());
        // Whoever reads changes nothing that a rider could belong to.
        let touch = Change { target, expect, ttl, kind: ChangeKind::Touch };
        write::one(&self.without_rider(), touch).await
    }

    /// The entries of a value in some indexes.
    pub(crate) fn entries(
        &self,
        indexes: &[Kept],
        target: &Admitted,
        value: &Json,
    ) -> Result<Vec<IndexEntry>> {
        let mut entries = Vec::with_capacity(indexes.len());
        for kept in indexes {
            entries.extend(kept.layout.entries(target.owner.as_deref(), &target.key, value)?);
        }
        let key_bytes_max = self.shared.store.limits().key_bytes_max;
        let long = entries.iter().find(|entry| entry.key.as_bytes().len() > key_bytes_max);
        if let Some(long) = long {
            let index = long.key.segments().nth(1).unwrap_or_default().into_owned();
            let reason = format!(
                "the entry's key would have {} bytes; at most {key_bytes_max} fit",
                long.key.as_bytes().len()
            );
            return Err(Error::Unindexable { index, field: "with its value".into(), reason });
        }
        Ok(entries)
    }

    /// The entries that a stored value holds. An index that cannot take the value holds none of it:
    /// what is stored can always be corrected or removed.
    pub(crate) fn held(
        &self,
        indexes: &[Kept],
        target: &Admitted,
        value: &Json,
    ) -> Vec<IndexEntry> {
        let each = indexes.chunks(1).flat_map(|kept| self.entries(kept, target, value));
        each.flatten().collect()
    }

    /// The error for a unique entry that another record has. The record is named only to those who
    /// may see it.
    pub(crate) fn clash(&self, entry: &Key, holder: Option<Key>) -> Error {
        let mut segments = entry.segments().skip(1);
        let index = segments.next().unwrap_or_default().into_owned();
        let values = segments.map(|segment| format!("{segment:?}")).collect::<Vec<_>>().join(", ");
        let holder = holder.filter(|key| self.access.admit(key, Act::Read).is_ok());
        Error::UniqueClash { index, values, holder }
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = &self.access;
        f.debug_struct("Space")
            .field("name", &access.space.name)
            .field("caller", &access.caller)
            .finish()
    }
}
