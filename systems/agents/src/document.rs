//! Entries as documents that come from elsewhere.

use jiff::Timestamp;
use jiff::civil::DateTime;
use keyward_engine::Json;
use keyward_records::field::members;

use crate::Result;
use crate::access::Access;
use crate::document_id::DocumentId;
use crate::entry::{AgentEntry, CREATED_AT, CREATED_BY_AGENT, METADATA, UPDATED_AT, VALUE};
use crate::import::DocumentReader;

/// The fields that a document may have.
pub(crate) const FIELDS: [&str; 13] = [
    "_id",
    "_rev",
    "userId",
    "namespace",
    "key",
    VALUE,
    METADATA,
    CREATED_BY_AGENT,
    "lastAccessedByAgent",
    "accessCount",
    CREATED_AT,
    UPDATED_AT,
    "lastAccessedAt",
];

/// An entry as a document: what [`AgentEntry::to_document`] writes, and what other programs that keep
/// entries in the same format write.
///
/// ```
/// use keyward_agents::Document;
///
/// let text = r#"{"_id":"ada:default:Z3JlZXRpbmc=","userId":"ada","namespace":"default","key":"greeting",
///     "value":"hi","createdAt":"2026-02-05T10:00:00Z","updatedAt":"2026-02-05T10:00:00Z"}"#;
/// let documents = Document::parse_all(text)?;
/// assert_eq!(documents[0].id.key, "greeting");
/// # Ok::<(), keyward_agents::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The user, the namespace and the key.
    pub id: DocumentId,
    /// The value, as it was written.
    pub value: Json,
    /// What was said about the value: a JSON object.
    pub metadata: Option<Json>,
    /// The agent that made the entry.
    pub created_by_agent: Option<String>,
    /// When, as it was written.
    pub created_at: String,
    /// When it was last updated, as it was written.
    pub updated_at: String,
    /// Who accessed it.
    pub access: Access,
}

impl Document {
    /// Reads documents in any form that a [`DocumentReader`] takes. An error names the first that is bad,
    /// by its number and line.
    pub fn parse_all(text: &str) -> Result<Vec<Self>> {
        let mut reader = DocumentReader::new(usize::MAX);
        let mut found = Vec::new();
        reader.push(text.as_bytes(), &mut found)?;
        reader.finish()?;
        Ok(found.into_iter().map(|incoming| incoming.document).collect())
    }

    /// Reads one document of plain JSON, or says what is wrong with it.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let json = Json::parse(text.to_owned()).map_err(|error| error.to_string())?;
        let fields = Fields::read(&json)?;
        let id = fields.id()?;
        let value = fields.json(VALUE).ok_or("it has no value")?;
        let metadata = fields.json(METADATA).filter(|metadata| metadata.as_str() != "null");
        if metadata.as_ref().is_some_and(|metadata| !metadata.is_object()) {
            return Err("its metadata is no object".to_owned());
        }
        let time = |name: &str| -> Result<Option<String>, String> {
            match fields.text(name)? {
                Some(text) if is_time(&text) => Ok(Some(text)),
                Some(text) => Err(format!("its {name} {text:?} is not a time in ISO 8601")),
                None => Ok(None),
            }
        };
        let needed = |name: &str| time(name)?.ok_or_else(|| format!("it has no {name}"));
        let count = match fields.json("accessCount") {
            Some(count) if count.as_str() != "null" => {
                count.as_str().parse::<u64>().map_err(|_| {
                    format!("its accessCount {count} is no whole number of at least zero")
                })?
            }
            _ => 0,
        };
        let agent = fields.text("lastAccessedByAgent")?;
        Ok(Self {
            id,
            value,
            metadata,
            created_by_agent: fields.text(CREATED_BY_AGENT)?,
            created_at: needed(CREATED_AT)?,
            updated_at: needed(UPDATED_AT)?,
            access: Access { count, agent, at: time("lastAccessedAt")? },
        })
    }
}

impl From<AgentEntry> for Document {
    fn from(entry: AgentEntry) -> Self {
        let id = entry.id();
        let AgentEntry {
            value, metadata, created_by_agent, created_at, updated_at, access, ..
        } = entry;
        Self { id, value, metadata, created_by_agent, created_at, updated_at, access }
    }
}

/// The fields of a document, each as JSON text.
struct Fields<'j>(Vec<(std::borrow::Cow<'j, str>, &'j str)>);

impl<'j> Fields<'j> {
    fn read(json: &'j Json) -> Result<Self, String> {
        let fields = members(json.as_str()).ok_or("it is no object")?;
        match fields.iter().find(|(name, _)| !FIELDS.contains(&&**name)) {
            Some((name, _)) => Err(format!("it has a field {name:?}, which entries do not have")),
            None => Ok(Self(fields)),
        }
    }

    fn raw(&self, name: &str) -> Option<&'j str> {
        self.0.iter().find(|(it, _)| it == name).map(|(_, text)| *text)
    }

    fn json(&self, name: &str) -> Option<Json> {
        self.raw(name).map(|text| Json::from_stored(text.to_owned()))
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        let text = self.raw(name).map(serde_json::from_str::<Option<String>>).transpose();
        Ok(text.map_err(|_| format!("its {name} is no text"))?.flatten())
    }

    /// Which entry it is: by its `_id`, by its fields, or by both if they say the same.
    fn id(&self) -> Result<DocumentId, String> {
        let named = (self.text("userId")?, self.text("namespace")?, self.text("key")?);
        let id = self.text("_id")?;
        match (id, named) {
            (Some(id), (Some(user), Some(namespace), Some(key))) => {
                let named = DocumentId::new(user, namespace, key);
                // Other programs do not escape the user's id; the fields say what is meant.
                if id != named.compose() && id != named.compose_unescaped() {
                    let right = named.compose();
                    return Err(format!(
                        "its _id {id:?} does not fit its fields, whose is {right:?}"
                    ));
                }
                Ok(named)
            }
            (Some(id), (user, namespace, key)) => {
                let parsed = DocumentId::parse(&id).map_err(|error| error.to_string())?;
                let fits =
                    [(&user, &parsed.user), (&namespace, &parsed.namespace), (&key, &parsed.key)]
                        .iter()
                        .all(|(named, parsed)| named.as_ref().is_none_or(|named| named == *parsed));
                if fits {
                    Ok(parsed)
                } else {
                    Err(format!("its _id {id:?} does not fit its fields"))
                }
            }
            (None, (Some(user), Some(namespace), Some(key))) => {
                Ok(DocumentId::new(user, namespace, key))
            }
            (None, _) => Err("it has no _id, and not all of userId, namespace and key".to_owned()),
        }
    }
}

/// Whether a text is a time in ISO 8601, with or without an offset.
fn is_time(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok() || text.parse::<DateTime>().is_ok()
}
