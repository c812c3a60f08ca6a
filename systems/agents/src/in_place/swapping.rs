//! Changes of a document, each by compare-and-swap.
//!
//! The checks of a commit are about one part of a document: the entry, or who accessed it. The database compares the
//! whole document. So where a swap fails, the document is read again: if the part that was checked is still the
//! same, the swap is tried on the new document, which keeps what others wrote into the other part.

use keyward_engine::{
    Commit, Document, Error, ErrorKind, Expect, Json, Outcome, Put, Result, Swapped, Version, Write,
};
use keyward_key::Key;

use super::DocumentLayout;
use super::engine::fixed_version;
use super::fields::Fields;
use super::own_changes;
use super::place::{Address, Part, Place, no_place};
use crate::access::AccessRow;
use crate::entry::Body;
use crate::fingerprint;
use crate::write_times::whole_seconds_text;

/// How often a swap is tried on a document that others change all the time.
const ATTEMPTS_MAX: usize = 32;

/// What becomes of a document.
enum Change {
    /// It stays as it is.
    None,
    Put(Json),
    /// New access fields: what they were, and what they are to be.
    PutRow(Json, Box<(AccessRow, AccessRow)>),
    Delete,
}

/// A document as far as it is known.
enum Known {
    /// Read or swapped a while ago, or only supposed to be absent: if it is not as expected, it is read.
    Earlier(Option<Document>),
    /// Read now.
    Now(Option<Document>),
}

impl DocumentLayout {
    pub(super) async fn swap(&self, commit: Commit) -> Result<Outcome> {
        let Commit { checks, mut writes } = commit;
        let write = writes.pop();
        let key = write.as_ref().map(Write::key).or(checks.first().map(|check| &check.key));
        let Some(key) = key.cloned() else { return Ok(applied(None)) };
        let expects: Vec<Expect> = checks.into_iter().map(|check| check.expect).collect();
        match self.place(&key) {
            Place::Document(part, address) => {
                self.swap_part(&key, part, &address, &expects, write).await
            }
            Place::Fixed(_) => without_document(&key, &expects, Some(&fixed_version()), write),
            Place::Nothing => without_document(&key, &expects, None, write),
        }
    }

    async fn swap_part(
        &self,
        key: &Key,
        part: Part,
        address: &Address,
        expects: &[Expect],
        write: Option<Write>,
    ) -> Result<Outcome> {
        if let Some(write) = &write
            && let Err(refused) = address.admit_write()
        {
            return match part {
                Part::Entry => Err(refused),
                // Whoever only reads such an entry is told nothing: its accesses are not counted.
                Part::Access => uncounted(write),
            };
        }
        let id = address.id();
        let is_put = matches!(write, Some(Write::Put(..)));
        let id_bytes_max = self.documents.limits().id_bytes_max;
        if id.len() > id_bytes_max {
            // There is no such document.
            return match is_put {
                true => Err(long_id(&id, id_bytes_max)),
                false => without_document(key, expects, None, write),
            };
        }
        let creates =
            is_put && !expects.is_empty() && expects.iter().all(|it| *it == Expect::Absent);
        let mut known = match self.recent.take(&id) {
            Some(document) => Known::Earlier(Some(document)),
            None if creates && part == Part::Entry => Known::Earlier(None),
            None => Known::Now(self.read_one(&id).await?),
        };
        for _ in 0..ATTEMPTS_MAX {
            let (document, is_now) = match known {
                Known::Earlier(document) => (document, false),
                Known::Now(document) => (document, true),
            };
            let fields = document.as_ref().and_then(|document| Fields::of(document, address));
            let version = fields.as_ref().map(|fields| version(part, fields)).transpose()?;
            let failed = failed(expects, version.as_ref());
            if !failed.is_empty() {
                if is_now {
                    document.into_iter().for_each(|document| self.recent.keep(document));
                    return Ok(Outcome::Conflicted { failed });
                }
                known = Known::Now(self.read_one(&id).await?);
                continue;
            }
            let Some(write) = &write else {
                if is_now {
                    return Ok(Outcome::Applied { revision: None, versions: Vec::new() });
                }
                known = Known::Now(self.read_one(&id).await?);
                continue;
            };
            if document.is_some() && fields.is_none() && is_put && part == Part::Entry {
                if is_now {
                    return Err(taken(&id, address));
                }
                known = Known::Now(self.read_one(&id).await?);
                continue;
            }
            let (change, version) = change(part, address, fields, write)?;
            let swapped = match (change, &document) {
                (Change::None, _) | (Change::Delete, None) if is_now => {
                    return Ok(applied(version));
                }
                // What was seen earlier is no reason to do nothing.
                (Change::None, _) | (Change::Delete, None) => Swapped::Conflicted,
                (Change::Delete, Some(removed)) => self.documents.delete(removed).await?,
                (Change::Put(fields), replaced) => self.put(&id, fields, replaced.as_ref()).await?,
                (Change::PutRow(fields, rows), replaced) => {
                    self.put_row(&id, fields, replaced.as_ref(), *rows).await?
                }
            };
            if let Swapped::Applied { .. } = swapped {
                if part == Part::Entry {
                    self.note(key, document.is_some(), version.is_some());
                }
                return Ok(applied(version));
            }
            known = Known::Now(self.read_one(&id).await?);
        }
        let message =
            format!("the document {id:?} changed {ATTEMPTS_MAX} times while it was written");
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// Notes an entry that was created or deleted, which lists may not show yet.
    fn note(&self, key: &Key, was: bool, is: bool) {
        let change = match (was, is) {
            (false, true) => own_changes::Change::Created,
            (true, false) => own_changes::Change::Deleted,
            _ => return,
        };
        self.own_changes.note(key.clone(), change, self.clock.now());
    }

    async fn put(&self, id: &str, fields: Json, replaced: Option<&Document>) -> Result<Swapped> {
        let swapped = self.documents.put(id, &fields, replaced).await?;
        if let Swapped::Applied { revision } = &swapped
            && !revision.is_empty()
        {
            self.recent.keep(Document { id: id.to_owned(), fields, revision: revision.clone() });
        }
        Ok(swapped)
    }

    /// Puts a document with new access fields, and remembers that while its outcome is unknown.
    async fn put_row(
        &self,
        id: &str,
        fields: Json,
        replaced: Option<&Document>,
        (before, intended): (AccessRow, AccessRow),
    ) -> Result<Swapped> {
        let Some(writer) = intended.marks.last().map(|(writer, ..)| writer.clone()) else {
            // Whoever writes without a mark does not ask later whether it arrived.
            return self.put(id, fields, replaced).await;
        };
        let earlier = self.attempts.begin(id, &writer, before, intended)?;
        let swapped = self.put(id, fields, replaced).await;
        match &swapped {
            Ok(Swapped::Applied { .. }) => self.attempts.end(id, &writer, None),
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
            Ok(Swapped::Conflicted) | Err(_) => self.attempts.end(id, &writer, earlier),
        }
        swapped
    }
}

/// What a write makes of a document, and the new version of the part that it writes.
fn change(
    part: Part,
    address: &Address,
    fields: Option<Fields<'_>>,
    write: &Write,
) -> Result<(Change, Option<Version>)> {
    match (part, write) {
        (_, Write::Add(..)) => Err(no_add()),
        (Part::Entry, Write::Put(_, put)) => {
            let body = entry_of(put)?;
            let mut fields = fields.unwrap_or_else(|| Fields::new(address));
            fields.set_body(&body);
            Ok((Change::Put(fields.to_json()), Some(fingerprint::of_entry(&body))))
        }
        (Part::Entry, Write::Delete(_)) => {
            // Of somebody else's document, nothing is deleted.
            let change = if fields.is_some() { Change::Delete } else { Change::None };
            Ok((change, None))
        }
        (Part::Access, Write::Put(_, put)) => {
            let row = row_of(put)?;
            let version = fingerprint::of_row(&row);
            Ok((change_row(fields, row), Some(version)))
        }
        (Part::Access, Write::Delete(_)) => {
            let born = fields.as_ref().map(|fields| fields.row().born).unwrap_or_default();
            Ok((change_row(fields, AccessRow { born, ..AccessRow::default() }), None))
        }
    }
}

/// What a new row makes of a document. A row of an entry that is gone counts for nothing, and is not written.
fn change_row(fields: Option<Fields<'_>>, row: AccessRow) -> Change {
    let Some(mut fields) = fields else { return Change::None };
    let before = fields.row();
    let is_same = (before.count, &before.agent, &before.at) == (row.count, &row.agent, &row.at);
    if before.born != row.born || is_same {
        return Change::None;
    }
    fields.set_row(&row);
    Change::PutRow(fields.to_json(), Box::new((before, row)))
}

fn version(part: Part, fields: &Fields<'_>) -> Result<Version> {
    match part {
        Part::Entry => {
            let body = fields.body();
            let body = Body::read(&body);
            body.map(|body| fingerprint::of_entry(&body)).map_err(|error| internal(&error))
        }
        Part::Access => Ok(fingerprint::of_row(&fields.row())),
    }
}

fn entry_of(put: &Put) -> Result<Body<'_>> {
    if put.metadata.is_some() {
        let message =
            "layout=document holds agent entries only; it has no place for a record's metadata";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    Body::read(&put.value).map_err(|error| {
        Error::new(ErrorKind::Invalid, format!("the value is no agent entry: {error}"))
            .advise("Write it through the agent data store, such as with `keyward agent set`.")
    })
}

fn row_of(put: &Put) -> Result<AccessRow> {
    let mut row = AccessRow::read(&put.value)
        .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
    row.id = None;
    // Times that are noted here are written as the original program does; those of an import as they came.
    if !row.marks.is_empty()
        && let Some(at) = row.at.as_ref().and_then(|at| at.parse().ok())
    {
        row.at = Some(whole_seconds_text(at));
    }
    Ok(row)
}

fn applied(version: Option<Version>) -> Outcome {
    Outcome::Applied { revision: None, versions: vec![version] }
}

/// The outcome of a write of access fields that are never written.
fn uncounted(write: &Write) -> Result<Outcome> {
    let version = match write {
        Write::Put(_, put) => Some(fingerprint::of_row(&row_of(put)?)),
        Write::Delete(_) => None,
        Write::Add(..) => return Err(no_add()),
    };
    Ok(applied(version))
}

fn no_add() -> Error {
    Error::new(ErrorKind::Unsupported, "layout=document cannot add to a number")
}

/// The checks that do not hold.
fn failed(expects: &[Expect], version: Option<&Version>) -> Vec<usize> {
    let holds = |expect: &Expect| match expect {
        Expect::Absent => version.is_none(),
        Expect::Version(expected) => version == Some(expected),
    };
    expects.iter().enumerate().filter(|(_, it)| !holds(it)).map(|(n, _)| n).collect()
}

/// The outcome for a key that no document stands behind.
fn without_document(
    key: &Key,
    expects: &[Expect],
    version: Option<&Version>,
    write: Option<Write>,
) -> Result<Outcome> {
    let failed = failed(expects, version);
    match write {
        Some(Write::Put(..) | Write::Add(..)) => Err(no_place(key)),
        Some(Write::Delete(_)) if version.is_some() => Err(no_place(key)),
        _ if !failed.is_empty() => Ok(Outcome::Conflicted { failed }),
        Some(Write::Delete(_)) => Ok(applied(None)),
        None => Ok(Outcome::Applied { revision: None, versions: Vec::new() }),
    }
}

pub(super) fn long_id(id: &str, id_bytes_max: usize) -> Error {
    let bytes = id.len();
    let message = format!(
        "the document's id would be {bytes} bytes long, and the database takes at most {id_bytes_max}: it is made of \
         the user's id, the namespace and the key in base64"
    );
    Error::new(ErrorKind::LimitExceeded, message)
        .advise("Use a shorter key or namespace; nothing was done.")
}

fn taken(id: &str, address: &Address) -> Error {
    let Address { user, namespace, key } = address;
    let message = format!(
        "the document {id:?} is not the entry {key:?} of the user {user:?} in the namespace {namespace:?}: its \
         userId, namespace and key are others"
    );
    Error::new(ErrorKind::Invalid, message)
        .advise("Use another namespace or user id; the document was left as it is.")
}

fn internal(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, error.to_string())
}
