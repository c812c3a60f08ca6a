//! Handing entries out as documents, and taking them in.

use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use keyward_engine::{
    Capabilities, Commit, Error as StoreError, ErrorKind, Expect, Expiry, ExpirySupport, Json, Put,
    Tier, Write,
};
use keyward_key::{Bindings, Key};
use keyward_records::field::quoted;
use keyward_records::{
    BUDGET_MAX, Error as RecordsError, Next, Precondition, Query, Record, Space, Ttl, Update,
    Written,
};

use crate::Agents;
use crate::access::{Access, AccessRow};
use crate::declaration::{KEY, NAMESPACE, USER};
use crate::document::Document;
use crate::entry::{AgentEntry, Body, born};
use crate::import::Incoming;
use crate::track::Line;
use crate::user_data::UserData;
use crate::{Error, Result, places};

/// How many documents are taken in one commit.
const TOGETHER_MAX: usize = 100;

/// After how many bytes a page of an export ends.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// How often the accesses of an entry are written that others count meanwhile.
const ATTEMPTS_MAX: usize = 32;

/// A page of documents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exported {
    /// The documents, in the order of namespaces and keys, without `_rev`.
    pub documents: Vec<Json>,
    /// Where to go on; `None` at the end. A page may be short and still have a next one.
    pub next: Option<String>,
}

/// What became of documents that were taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Imported {
    /// Entries that were made.
    pub created: usize,
    /// Entries that were there, and have now what the document says.
    pub replaced: usize,
}

impl Imported {
    /// Adds what became of others.
    pub fn add(&mut self, other: Self) {
        self.created += other.created;
        self.replaced += other.replaced;
    }

    /// The error, saying how many entries were written before it.
    pub fn before(self, error: Error) -> Error {
        match (self.created + self.replaced, error) {
            (0, error) => error,
            (before, Error::Partly { done, source }) => {
                Error::Partly { done: before + done, source }
            }
            (done, error) => Error::Partly { done, source: Box::new(error) },
        }
    }
}

impl Agents {
    /// Imports documents of several users, each for the user that it names, as `reach` reaches that user.
    /// Only for operators: whoever calls this writes for everybody whom `reach` gives.
    ///
    /// Otherwise as [`UserData::import_read`]: documents are written in their order, so if one cannot be imported,
    /// those before it are written, whosever they are, and none after it. Only documents of one user that follow each
    /// other are written together: many are imported fastest if they are sorted by user, as exports are.
    pub async fn import_all_users(
        &self,
        documents: Vec<Incoming>,
        reach: impl Fn(&str) -> Result<UserData>,
    ) -> Result<Imported> {
        let mut users: HashMap<String, UserData> = HashMap::new();
        let mut imported = Imported::default();
        let mut documents = documents.into_iter().peekable();
        while let Some(first) = documents.next() {
            let user = match users.entry(first.document.id.user.clone()) {
                Occupied(known) => known.into_mut(),
                Vacant(unknown) => match reach(unknown.key()) {
                    Ok(reached) => unknown.insert(reached),
                    Err(error) => return Err(imported.before(first.refused(error))),
                },
            };
            let mut run = vec![first];
            while let Some(next) = documents.next_if(|next| *next.document.id.user == *user.user) {
                run.push(next);
            }
            let taken = user.import_read(run).await;
            imported.add(taken.map_err(|error| imported.before(error))?);
        }
        Ok(imported)
    }
}

impl Incoming {
    /// The error of a document that is refused.
    fn refused(&self, error: Error) -> Error {
        Error::InDocument { number: self.number, line: self.line, source: Box::new(error) }
    }
}

impl UserData {
    /// One page of the user's entries as documents, of all namespaces or of one, at most `limit` (up to
    /// [`LIMIT_MAX`](keyward_records::LIMIT_MAX)). As JSON lines or in an array, [`Document::parse_all`]
    /// reads them again. They do not count as accessed.
    pub async fn export(
        &self,
        namespace: Option<&str>,
        after: Option<String>,
        limit: usize,
    ) -> Result<Exported> {
        let (entries, next) = self.page_of_all(namespace, after, limit).await?;
        let documents: Vec<Json> = entries.iter().map(AgentEntry::to_document).collect();
        self.log(Line { namespace, count: Some(documents.len()), ..Line::of("export") });
        Ok(Exported { documents, next })
    }

    /// One page of the user's entries, of all namespaces or of one.
    pub(crate) async fn page_of_all(
        &self,
        namespace: Option<&str>,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<AgentEntry>, Option<String>)> {
        let mut values = Bindings::new().with(USER, &*self.user);
        if let Some(namespace) = namespace {
            values = values.with(NAMESPACE, namespace);
        }
        let query = Query::key(values).limit(limit).after(after).budget(BUDGET_MAX);
        let query = query.bytes_max(PAGE_BYTES_MAX);
        let answer = self.space()?.query(&query).await?;
        Ok((self.complete_all(answer.records).await?, answer.next))
    }

    /// Imports documents: each entry then has exactly what its document says, with its times as they were
    /// written, and who accessed it. The time to live comes from its namespace and starts now.
    ///
    /// Documents of other users are refused before anything is written. Many documents are written in
    /// several commits. If one cannot be imported, the error names it, those before it are written and none after
    /// it: [`Error::Partly`] says how many, and importing everything again is safe.
    pub async fn import(&self, documents: Vec<Document>) -> Result<Imported> {
        let number = |(n, document)| Incoming { document, number: n + 1, line: None, bytes: 0 };
        self.import_read(documents.into_iter().enumerate().map(number).collect()).await
    }

    /// Imports documents that a [`DocumentReader`](crate::DocumentReader) read, as
    /// [`import`](UserData::import) does. Errors name their numbers and lines.
    pub async fn import_read(&self, documents: Vec<Incoming>) -> Result<Imported> {
        let other = documents.iter().find(|incoming| *incoming.document.id.user != *self.user);
        if let Some(Incoming { document, number, line, .. }) = other {
            return Err(Error::OtherUser {
                number: *number,
                line: *line,
                user: document.id.user.clone(),
                owner: self.user.to_string(),
            });
        }
        let mut imported = Imported::default();
        let mut rest = documents.as_slice();
        let mut together_max = match self.shared().store().capabilities().tier() {
            Tier::Atomic => TOGETHER_MAX,
            Tier::Recoverable | Tier::Advisory => 1,
        };
        while !rest.is_empty() {
            let (some, later) = rest.split_at(distinct(rest, together_max));
            match self.take(some).await {
                Ok(taken) => {
                    imported.add(taken);
                    rest = later;
                }
                // Fewer may fit one commit, and what stands before a document that is refused is still written.
                Err(error) if some.len() > 1 && is_of_a_document(&error) => {
                    together_max = some.len() / 2;
                }
                Err(error) => return Err(imported.before(error)),
            }
        }
        self.log(Line { count: Some(documents.len()), ..Line::of("import") });
        Ok(imported)
    }

    /// Takes distinct documents, in one commit where there is more than one. The error of a single one names it.
    async fn take(&self, documents: &[Incoming]) -> Result<Imported> {
        // What is gathered belongs to the entries as they were, and would be added to what documents say.
        self.agents.flush().await?;
        let mut updates = Vec::with_capacity(documents.len());
        let mut rider = Commit::new();
        for incoming in documents {
            let update = self.update(&incoming.document, None).await;
            let (update, row) = update.map_err(|error| incoming.refused(error))?;
            rider.writes.push(row);
            updates.push(update);
        }
        let space = self.space()?;
        let refused = |error: RecordsError| match documents {
            [one] if error.is_of_the_record() => one.refused(error.into()),
            _ => error.into(),
        };
        let written = match space.guarantee() {
            Tier::Atomic => {
                space.with_rider(rider).apply_together(updates).await.map_err(refused)?
            }
            Tier::Recoverable | Tier::Advisory => {
                let mut written = Vec::with_capacity(updates.len());
                for (update, row) in updates.into_iter().zip(rider.writes) {
                    written.push(self.write_one(&space, update, row).await.map_err(refused)?);
                }
                written
            }
        };
        let is_new = |written: &&Written| matches!(written, Written::Applied { created: true, .. });
        let created = written.iter().filter(is_new).count();
        Ok(Imported { created, replaced: written.len() - created })
    }

    /// Writes an entry, and then who accessed it, where commits take one key. What is expected is that of
    /// the entry.
    async fn write_one(
        &self,
        space: &Space,
        update: Update<'_>,
        row: Write,
    ) -> Result<Written, RecordsError> {
        let written = space.apply(update).await?;
        if written.is_accepted() {
            // Without checks nothing conflicts.
            let commit = Commit { writes: vec![row], ..Commit::new() };
            let _ = self.shared().store().commit(commit).await?;
        }
        Ok(written)
    }

    /// Makes an entry what a document says, if it is as expected. Accesses are never taken back: those count that are
    /// more, the document's or those that the entry has when it is written, also if others count meanwhile. `before`
    /// says when the entry was made that is replaced.
    pub(crate) async fn put_document(
        &self,
        document: &Document,
        before: Option<&str>,
        expect: Precondition,
        ttl: Ttl,
    ) -> Result<Written> {
        let space = self.space()?;
        let update = async || {
            let (update, _) = self.update(document, Some(ttl)).await?;
            Ok::<_, Error>(update.expecting(expect.clone()))
        };
        if space.guarantee() == Tier::Atomic {
            for _ in 0..ATTEMPTS_MAX {
                let rider = self.accesses(document, before, ttl).await?;
                match space.clone().with_rider(rider).apply(update().await?).await {
                    // Somebody has counted meanwhile.
                    Err(RecordsError::RiderRefused { .. }) => {}
                    written => return Ok(written?),
                }
            }
        } else {
            let written = space.apply(update().await?).await?;
            if !written.is_accepted() {
                return Ok(written);
            }
            for _ in 0..ATTEMPTS_MAX {
                let commit = self.accesses(document, before, ttl).await?;
                if commit.writes.is_empty()
                    || self.shared().store().commit(commit).await?.is_applied()
                {
                    return Ok(written);
                }
            }
        }
        let place = self.use_namespace(&document.id.namespace)?.place(&document.id.key)?;
        let (key, attempts) = (places::access(&place), ATTEMPTS_MAX);
        Err(RecordsError::Contended { key, attempts }.into())
    }

    /// What is to be written about the accesses of an entry that becomes what a document says, if nobody counts
    /// meanwhile. Nothing, if it is there already.
    async fn accesses(
        &self,
        document: &Document,
        before: Option<&str>,
        ttl: Ttl,
    ) -> Result<Commit> {
        let store = self.shared().store();
        let namespace = self.use_namespace(&document.id.namespace)?;
        let rules = namespace.known_rules().await?;
        let key = places::access(&namespace.place(&document.id.key)?);
        let found = store.get(&key).await?;
        let known = found.as_ref().and_then(|row| AccessRow::read(&row.value).ok());
        let known = known
            .filter(|row| row.born == document.created_at || before == Some(row.born.as_str()));
        let mut next = access_row(document);
        if let Some(known) = &known {
            let is_unsaid = next.agent.is_none() && next.at.is_none();
            if is_unsaid || known.at.is_some() && known.count > next.count {
                (next.agent, next.at) = (known.agent.clone(), known.at.clone());
            }
            next.count = next.count.max(known.count);
            // By its marks, whoever else counts knows which of its writes have arrived. Documents have no place for
            // them.
            if !rules.in_place {
                next.marks.clone_from(&known.marks);
            }
        }
        let expires = store.capabilities().expiry != ExpirySupport::Unsupported;
        let ends = namespace.writer(&rules).ends(ttl).filter(|_| expires);
        let lives_on = ends.is_none() && found.as_ref().is_none_or(|row| row.expires.is_none());
        let is_said = |known: &AccessRow| {
            let AccessRow { count, agent, at, born, .. } = known;
            (*count, agent, at, born) == (next.count, &next.agent, &next.at, &next.born)
        };
        let is_there = lives_on && known.as_ref().is_some_and(is_said);
        // A document has its accesses in it: if it is another entry's by now, they are not for this one to change.
        let is_of_another = rules.in_place && known.is_none();
        let mut commit = Commit::new();
        match (&found, next.tells()) {
            _ if is_there || is_of_another => return Ok(commit),
            (None, false) => return Ok(commit),
            (Some(_), false) => commit = commit.delete(key.clone()),
            (_, true) => commit = commit.put(key.clone(), row_put(&next, ends)?),
        }
        if store.capabilities().compare {
            let expect = found.map_or(Expect::Absent, |row| Expect::Version(row.version));
            commit = commit.check(key, expect);
        }
        Ok(commit)
    }

    /// Why an entry cannot be written here, as far as that is known without trying: its ids and the limits of the
    /// store.
    pub(crate) async fn refusal(&self, document: &Document) -> Result<Option<Error>> {
        let checked = match self.update(document, Some(Ttl::Never)).await {
            Ok(_) => {
                let namespace = self.use_namespace(&document.id.namespace)?;
                let capabilities = self.shared().store().capabilities();
                match namespace.known_rules().await?.in_place {
                    true => crate::in_place::admit(document, capabilities),
                    false => admit(document, capabilities),
                }
            }
            Err(error @ Error::Invalid(_)) => return Ok(Some(error)),
            Err(Error::Records(error)) if error.is_of_the_record() => {
                return Ok(Some(error.into()));
            }
            Err(error) => return Err(error),
        };
        Ok(checked.err().map(Error::from))
    }

    /// The change that a document makes, and the write of who accessed its entry. How long it lives is said by its
    /// namespace, unless it is said here.
    async fn update(
        &self,
        document: &Document,
        ttl: Option<Ttl>,
    ) -> Result<(Update<'static>, Write)> {
        let store = self.shared().store();
        let namespace = self.use_namespace(&document.id.namespace)?;
        let place = namespace.place(&document.id.key)?;
        let rules = namespace.known_rules().await?;
        let writer = namespace.writer(&rules);
        let metadata = document.metadata.as_ref().map(Json::as_str);
        writer.check(document.value.as_str(), metadata)?;
        let ttl = match ttl {
            Some(ttl) => ttl,
            None => writer.ttl(metadata, None)?,
        };
        let expires = store.capabilities().expiry != ExpirySupport::Unsupported;
        let ends = writer.ends(ttl).filter(|_| expires);
        let (key, row) = (places::access(&place), access_row(document));
        let row = match row.tells() {
            true => Write::Put(key, row_put(&row, ends)?),
            false => Write::Delete(key),
        };
        let next = Next::new(body(document)).ttl(ttl);
        Ok((Update::new(place, move |_| Ok(Some(next.clone()))), row))
    }

    /// The entries of records of the user's, with what is known about accesses.
    pub(crate) async fn complete_all(&self, records: Vec<Record>) -> Result<Vec<AgentEntry>> {
        let shared = self.shared();
        let pattern = &shared.declaration()?.key;
        let rows: Vec<Key> = records.iter().map(|record| places::access(&record.key)).collect();
        let rows = shared.store().get_many(&rows).await?;
        let mut entries = Vec::with_capacity(records.len());
        for (record, row) in records.into_iter().zip(rows) {
            let values = pattern.parse_key(&record.key).unwrap_or_default();
            let text = |name: &str| values.text(name).unwrap_or_default().to_owned();
            let (namespace, key) = (text(NAMESPACE), text(KEY));
            let row = row.map(|row| row.value);
            let access = shared.tracker.access(&record.key, born(&record.value), row)?;
            entries.push(AgentEntry::read(&self.user, &namespace, key, record, access)?);
        }
        Ok(entries)
    }
}

/// Whether an error is about one of the documents that were taken together, or about how many they were.
fn is_of_a_document(error: &Error) -> bool {
    match error {
        Error::Records(error) => error.is_of_the_record(),
        error => error.document().is_some(),
    }
}

/// How many of the documents, from the first on, are different entries.
fn distinct(documents: &[Incoming], max: usize) -> usize {
    let mut known = HashSet::new();
    documents.iter().take(max).take_while(|it| known.insert(&it.document.id)).count()
}

fn body(document: &Document) -> Json {
    let quoted_text = |text: &Option<String>| text.as_deref().map(quoted);
    let created_by_agent = quoted_text(&document.created_by_agent);
    let body = Body {
        created_by_agent: created_by_agent.as_deref(),
        created_at: &quoted(&document.created_at),
        updated_at: &quoted(&document.updated_at),
        metadata: document.metadata.as_ref().map(Json::as_str),
        value: document.value.as_str(),
    };
    body.write()
}

/// Refuses a document whose record is larger than any that the store takes.
fn admit(document: &Document, capabilities: &Capabilities) -> keyward_engine::Result<()> {
    let (bytes, bytes_max) = (body(document).len(), capabilities.limits.value_bytes_max);
    if bytes <= bytes_max {
        return Ok(());
    }
    let message = format!("the entry is {bytes} bytes large; the store takes {bytes_max}");
    Err(StoreError::new(ErrorKind::LimitExceeded, message))
}

/// The row of who accessed it.
fn access_row(document: &Document) -> AccessRow {
    let Access { count, agent, at } = document.access.clone();
    AccessRow { count, agent, at, born: document.created_at.clone(), ..AccessRow::default() }
}

/// The row of an entry that ends at a moment, or never.
fn row_put(row: &AccessRow, ends: Option<Timestamp>) -> Result<Put> {
    let ends = ends.map(crate::track::row_end);
    Ok(Put { value: row.write()?, metadata: None, expiry: ends.map(Expiry::At) })
}
