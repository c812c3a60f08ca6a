//! An entry, and how its record holds it.

use std::sync::LazyLock;

use jiff::Timestamp;
use keyward_engine::{Json, Version};
use keyward_records::Record;
use keyward_records::field::{find, members, object, quoted};
use keyward_schema::FieldPath;

use crate::access::Access;
use crate::document_id::DocumentId;
use crate::error::damaged;

pub(crate) const VALUE: &str = "value";
pub(crate) const METADATA: &str = "metadata";
pub(crate) const CREATED_BY_AGENT: &str = "createdByAgent";
pub(crate) const CREATED_AT: &str = "createdAt";
pub(crate) const UPDATED_AT: &str = "updatedAt";

/// An entry of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEntry {
    /// The user whose entry it is.
    pub user: String,
    /// The namespace.
    pub namespace: String,
    /// The key.
    pub key: String,
    /// The value, as it was given.
    pub value: Json,
    /// What was said about the value: a JSON object.
    pub metadata: Option<Json>,
    /// The agent that made the entry.
    pub created_by_agent: Option<String>,
    /// When it was made, in ISO 8601.
    pub created_at: String,
    /// When its value or metadata were last set, in ISO 8601.
    pub updated_at: String,
    /// Who accessed it, as far as is known here: what other processes have not written yet is missing.
    pub access: Access,
    /// Its version.
    pub version: Version,
    /// From when on it is absent.
    pub expires: Option<Timestamp>,
    /// The id of the document that it is stored in, in a database that another program writes too.
    pub(crate) stored_id: Option<String>,
}

impl AgentEntry {
    /// The entry that a record holds.
    pub(crate) fn read(
        user: &str,
        namespace: &str,
        key: String,
        record: Record,
        (access, stored_id): (Access, Option<String>),
    ) -> keyward_records::Result<Self> {
        let body = Body::read(&record.value)?;
        let value = body.value_of(&record.value);
        let metadata = body.metadata.map(|text| Json::from_stored(text.to_owned()));
        Ok(Self {
            user: user.to_owned(),
            namespace: namespace.to_owned(),
            key,
            value,
            metadata,
            created_by_agent: body.created_by_agent.map(plain).transpose()?,
            created_at: plain(body.created_at)?,
            updated_at: plain(body.updated_at)?,
            access,
            version: record.version,
            expires: record.expires,
            stored_id,
        })
    }

    /// Its id.
    pub fn id(&self) -> DocumentId {
        DocumentId::new(&*self.user, &*self.namespace, &*self.key)
    }

    /// The entry as a document, with the names of fields that its format has. What is not known has no
    /// field. Its `_id` is the one that it is stored with: in a database that another program writes too, nothing in
    /// it is escaped.
    pub fn to_document(&self) -> Json {
        self.document(None)
    }

    /// The same with its version as `_rev`.
    pub fn to_document_with_rev(&self) -> Json {
        self.document(Some(quoted(&self.version.to_string())))
    }

    fn document(&self, rev: Option<String>) -> Json {
        let text = |text: &str| Some(quoted(text));
        let id = self.stored_id.clone().unwrap_or_else(|| self.id().compose());
        let optional = |text: &Option<String>| text.as_deref().map(quoted);
        let fields = [
            ("_id", text(&id)),
            ("_rev", rev),
            ("userId", text(&self.user)),
            ("namespace", text(&self.namespace)),
            ("key", text(&self.key)),
            (VALUE, Some(self.value.as_str().to_owned())),
            (METADATA, self.metadata.as_ref().map(|metadata| metadata.as_str().to_owned())),
            (CREATED_BY_AGENT, optional(&self.created_by_agent)),
            ("lastAccessedByAgent", optional(&self.access.agent)),
            ("accessCount", Some(self.access.count.to_string())),
            (CREATED_AT, text(&self.created_at)),
            (UPDATED_AT, text(&self.updated_at)),
            ("lastAccessedAt", optional(&self.access.at)),
        ];
        let known = fields.iter().filter_map(|(name, text)| Some((*name, text.as_deref()?)));
        Json::from_stored(object(known))
    }
}

/// An entry as its record holds it: each member as JSON text. The value stands last, so that what is
/// asked for most is found without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Body<'j> {
    pub created_by_agent: Option<&'j str>,
    pub created_at: &'j str,
    pub updated_at: &'j str,
    pub metadata: Option<&'j str>,
    pub value: &'j str,
}

impl<'j> Body<'j> {
    pub fn read(record: &'j Json) -> keyward_records::Result<Self> {
        let all = members(record.as_str()).unwrap_or_default();
        let member = |name: &str| all.iter().find(|(it, _)| it == name).map(|(_, text)| *text);
        let needed =
            |name: &str| member(name).ok_or_else(|| damaged(format!("an entry without {name:?}")));
        Ok(Self {
            created_by_agent: member(CREATED_BY_AGENT),
            created_at: needed(CREATED_AT)?,
            updated_at: needed(UPDATED_AT)?,
            metadata: member(METADATA),
            value: needed(VALUE)?,
        })
    }

    pub fn write(&self) -> Json {
        let members = [
            (CREATED_BY_AGENT, self.created_by_agent),
            (CREATED_AT, Some(self.created_at)),
            (UPDATED_AT, Some(self.updated_at)),
            (METADATA, self.metadata),
            (VALUE, Some(self.value)),
        ];
        let there = members.into_iter().filter_map(|(name, text)| Some((name, text?)));
        Json::from_stored(object(there))
    }

    fn value_of(&self, record: &Json) -> Json {
        Json::from_stored(record.to_bytes().slice_ref(self.value.as_bytes()))
    }
}

/// A text that stands in JSON.
pub(crate) fn plain(json: &str) -> keyward_records::Result<String> {
    serde_json::from_str(json).map_err(|_| damaged(format!("{json} is no text")))
}

/// The value of the entry that a record holds, without looking at the rest.
pub(crate) fn value_of(record: &Json) -> keyward_records::Result<Json> {
    static PATH: LazyLock<Option<FieldPath>> = LazyLock::new(|| VALUE.parse().ok());
    let found = PATH.as_ref().and_then(|path| find(record.as_bytes(), path));
    let found = found.ok_or_else(|| damaged("an entry without a value"))?;
    Ok(Json::from_stored(record.to_bytes().slice_ref(found)))
}

/// When the entry that a record holds was made: what tells it from one that had the same key before.
pub(crate) fn born(record: &Json) -> &str {
    std::str::from_utf8(born_bytes(record)).unwrap_or_default()
}

/// The same, as the bytes that stand in the record: every read of an agent's looks for them.
pub(crate) fn born_bytes(record: &Json) -> &[u8] {
    static PATH: LazyLock<Option<FieldPath>> = LazyLock::new(|| CREATED_AT.parse().ok());
    match PATH.as_ref().and_then(|path| find(record.as_bytes(), path)) {
        Some([b'"', text @ .., b'"']) => text,
        _ => &[],
    }
}
