//! Documents in the layout of another program, with native fields as Google's clients write them.

mod change;
mod decode;
mod encode;
mod index;
mod members;

use std::collections::HashMap;
use std::fmt;

use keyward_engine::{
    BoxFuture, Cursor, Document, DocumentLimits, DocumentList, DocumentPage, DocumentRow,
    Documents, Error, ErrorKind, Json, Result, Swapped,
};
use keyward_http::Effect;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Options;
use crate::client::Client;
use crate::collection::{ID_BYTES_MAX, id_problem};
use crate::commit::Committed;
use crate::document::Document as Stored;
use crate::error::garbled;
use crate::read::parts;

use change::Changes;
use decode::decode;

/// The size of a document, with its name.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// The field with the document's id, which the layout has in every document.
const ID: &str = "_id";
const OWNER: &str = "userId";
const GROUP: &str = "namespace";

const LIMITS: DocumentLimits = DocumentLimits {
    engine: "firestore",
    id_bytes_max: ID_BYTES_MAX,
    // As plain JSON: the rest is for the id, which Firestore counts as part of the name and the layout has as a field too.
    document_bytes_max: DOCUMENT_BYTES_MAX - (5 << 10),
    get_ids_max: 300,
    list_rows_max: 1_000,
};

#[derive(Serialize)]
struct Writes {
    writes: [Write; 1],
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Write {
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<Update>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update_mask: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delete: Option<String>,
    current_document: Value,
}

#[derive(Serialize)]
struct Update {
    name: String,
    /// As they were written: as a [`Value`], doubles would be read, and not always to the last bit.
    fields: Box<RawValue>,
}

/// The documents of a Firestore collection. Clones share its connections.
///
/// JSON is kept in Firestore's own types: integers of 64 bits, doubles, strings, booleans, null, maps and arrays. What these
/// cannot hold exactly is refused. Firestore's other types are shown as JSON, a timestamp, a reference and bytes (base64) as
/// strings, a point as `{"latitude":…,"longitude":…}`; they keep their type as long as a put does not change them. A vector is
/// shown as Firestore's own JSON has it, `{"__type__":"__vector__","value":[…]}`, and is written in the same form.
#[derive(Clone)]
pub struct FirestoreDocuments {
    client: Client,
    is_emulator: bool,
}

impl FirestoreDocuments {
    /// Opens a collection. Collections need not be made: one without documents is one that does not exist.
    ///
    /// Needs a Tokio runtime, which must go on as long as the documents are used.
    pub async fn open(options: Options) -> Result<Self> {
        let client = Client::open(&options).await?;
        Ok(Self { client, is_emulator: options.emulator.is_some() })
    }

    async fn read(&self, ids: &[String]) -> Result<Vec<Option<Document>>> {
        // There is no document with such an id, and a request that asks for one is refused whole.
        let possible = ids.iter().filter(|id| id_problem(id).is_none());
        let names: Vec<String> = possible.map(|id| self.client.collection.name(id)).collect();
        if names.is_empty() {
            return Ok(vec![None; ids.len()]);
        }
        let body = match self.client.read("batchGet", &json!({ "documents": names })).await {
            // Together they are too large for one answer.
            Err(error) if error.kind() == ErrorKind::LimitExceeded && ids.len() > 1 => {
                let (first, rest) = ids.split_at(ids.len() / 2);
                let mut documents = Box::pin(self.read(first)).await?;
                documents.extend(Box::pin(self.read(rest)).await?);
                return Ok(documents);
            }
            body => body?,
        };
        let mut found = HashMap::with_capacity(names.len());
        for part in parts(&body)? {
            if let Some(document) = part.found {
                let document = self.document(&document)?;
                found.insert(document.id.clone(), Some(document));
            } else if let Some(name) = part.missing {
                found.insert(self.id(&name)?.to_owned(), None);
            }
        }
        let document = |id: &String| match (found.get(id), id_problem(id)) {
            (Some(document), _) => Ok(document.clone()),
            (None, Some(_)) => Ok(None),
            (None, None) => {
                Err(garbled(format_args!("it tells nothing about the document {id:?}")))
            }
        };
        ids.iter().map(document).collect()
    }

    fn id<'n>(&self, name: &'n str) -> Result<&'n str> {
        let outside = || garbled(format_args!("it has {name:?}, which is not in the collection"));
        self.client.collection.document_id(name).ok_or_else(outside)
    }

    fn document(&self, stored: &Stored<'_>) -> Result<Document> {
        let id = self.id(&stored.name)?;
        let fields = stored.fields.map_or("{}", RawValue::get);
        let mut text = String::with_capacity(fields.len());
        decode(fields, &mut text).map_err(|reason| {
            garbled(format_args!("the document {id:?} cannot be read: {reason}"))
        })?;
        Ok(Document {
            id: id.to_owned(),
            fields: Json::from_stored(text),
            revision: stored.update_time.as_ref().into(),
        })
    }

    async fn create(&self, id: &str, fields: &Json) -> Result<Swapped> {
        let fields = encode::document(id, fields)?;
        let bytes = fields.bytes + self.client.collection.name_bytes(id) + encode::MORE_BYTES;
        check_size(id, bytes)?;
        let write = Write {
            update: Some(Update { name: self.client.collection.name(id), fields: fields.raw()? }),
            current_document: json!({ "exists": false }),
            ..Write::default()
        };
        // Not sent again after a lost answer: somebody might have deleted it in between.
        self.commit(write, Effect::Writes).await
    }

    async fn replace(&self, replaced: &Document, fields: &Json) -> Result<Swapped> {
        let id = &replaced.id;
        let changes = Changes::between(&replaced.fields, fields)?;
        if changes.is_empty() {
            let now = self.read(std::slice::from_ref(id)).await?.pop().flatten();
            return Ok(match now.filter(|now| now.revision == replaced.revision) {
                Some(now) => Swapped::Applied { revision: now.revision },
                None => Swapped::Conflicted,
            });
        }
        let bytes = encode::size(fields.as_str()) + self.client.collection.name_bytes(id);
        check_size(id, bytes + encode::MORE_BYTES + ID.len() + 1 + id.len() + 1)?;
        let fields = changes.fields()?.raw()?;
        let write = Write {
            update: Some(Update { name: self.client.collection.name(id), fields }),
            update_mask: Some(json!({ "fieldPaths": changes.paths() })),
            current_document: json!({ "updateTime": replaced.revision.as_ref() }),
            ..Write::default()
        };
        self.commit(write, Effect::WritesOnce).await
    }

    async fn commit(&self, write: Write, effect: Effect) -> Result<Swapped> {
        let is_delete = write.delete.is_some();
        let answer = self.client.call("commit", &Writes { writes: [write] }, effect).await?;
        let body = match answer.result {
            Ok(body) => body,
            // The earlier attempt may be what it met.
            Err(refusal) if answer.resent => {
                let message =
                    format!("an attempt got no answer, and the next: {}", refusal.message);
                return Err(Error::new(ErrorKind::OutcomeUnknown, message));
            }
            Err(refusal) if refusal.is_unmet() || refusal.is_contended() => {
                return Ok(Swapped::Conflicted);
            }
            Err(refusal) => return Err(refusal.into_error("write to")),
        };
        let committed = serde_json::from_slice::<Committed>(&body).ok();
        let time =
            committed.and_then(|committed| committed.write_results.into_iter().next()?.update_time);
        match time {
            _ if is_delete => Ok(Swapped::Applied { revision: "".into() }),
            Some(revision) => Ok(Swapped::Applied { revision: revision.into() }),
            None => {
                let message = "Firestore's answer to a commit cannot be read";
                Err(Error::new(ErrorKind::OutcomeUnknown, message))
            }
        }
    }

    async fn page(&self, list: &DocumentList) -> Result<DocumentPage> {
        let is = |field: &str, text: &str| {
            json!({ "fieldFilter": {
                "field": { "fieldPath": field },
                "op": "EQUAL",
                "value": { "stringValue": text },
            } })
        };
        let mut filters = vec![is(OWNER, &list.owner)];
        filters.extend(list.group.as_deref().map(|group| is(GROUP, group)));
        let mut limit = list.limit.clamp(1, LIMITS.list_rows_max);
        let mut query = json!({
            "from": [{ "collectionId": self.client.collection.id() }],
            "where": { "compositeFilter": { "op": "AND", "filters": filters } },
            "orderBy": [{ "field": { "fieldPath": "__name__" }, "direction": "ASCENDING" }],
            "limit": limit,
        });
        if !list.with_documents {
            query["select"] = json!({ "fields": [{ "fieldPath": GROUP }] });
        }
        if let Some(cursor) = &list.after {
            let id =
                std::str::from_utf8(cursor.as_bytes()).ok().filter(|id| id_problem(id).is_none());
            let id = id.ok_or_else(|| {
                Error::new(ErrorKind::Invalid, "the cursor is none of this store's")
            })?;
            let name = self.client.collection.name(id);
            query["startAt"] = json!({ "values": [{ "referenceValue": name }], "before": false });
        }
        let body = loop {
            match self.client.query("runQuery", &json!({ "structuredQuery": query })).await {
                Err(error) if error.kind() == ErrorKind::LimitExceeded && limit > 1 => {
                    limit /= 2;
                    query["limit"] = json!(limit);
                }
                body => break body?,
            }
        };
        let documents: Vec<_> =
            parts(&body)?.into_iter().filter_map(|part| part.document).collect();
        let mut page = DocumentPage::default();
        if documents.len() == limit
            && let Some(last) = documents.last()
        {
            page.next = Some(Cursor::new(self.id(&last.name)?.to_owned()));
        }
        for stored in &documents {
            let document = self.document(stored)?;
            // One whose group is no text is in no group.
            let group = decode::text_field(stored.fields.map_or("{}", RawValue::get), GROUP);
            let Some(group) = group else { continue };
            page.rows.push(DocumentRow {
                id: document.id.clone(),
                group,
                document: list.with_documents.then_some(document),
            });
        }
        Ok(page)
    }
}

impl Documents for FirestoreDocuments {
    fn limits(&self) -> &DocumentLimits {
        &LIMITS
    }

    fn get_many<'a>(&'a self, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Document>>>> {
        Box::pin(self.read(ids))
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        fields: &'a Json,
        replaced: Option<&'a Document>,
    ) -> BoxFuture<'a, Result<Swapped>> {
        Box::pin(async move {
            if let Some(problem) = id_problem(id) {
                let is_long = id.len() > ID_BYTES_MAX;
                let kind = if is_long { ErrorKind::LimitExceeded } else { ErrorKind::Invalid };
                let error = Error::new(kind, format!("the document id {id:?} {problem}"));
                return Err(match is_long {
                    true => error,
                    false => error.advise(
                        "Use a user id and a namespace without slashes, or another database.",
                    ),
                });
            }
            match replaced {
                None => self.create(id, fields).await,
                Some(replaced) => self.replace(replaced, fields).await,
            }
        })
    }

    fn delete<'a>(&'a self, removed: &'a Document) -> BoxFuture<'a, Result<Swapped>> {
        Box::pin(async move {
            let write = Write {
                delete: Some(self.client.collection.name(&removed.id)),
                current_document: json!({ "updateTime": removed.revision.as_ref() }),
                ..Write::default()
            };
            self.commit(write, Effect::WritesOnce).await
        })
    }

    fn list<'a>(&'a self, list: &'a DocumentList) -> BoxFuture<'a, Result<DocumentPage>> {
        Box::pin(self.page(list))
    }

    fn prepare(&self, create: bool) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(async move {
            // The emulator answers every query without an index, and has no API for them.
            if self.is_emulator {
                Ok(Vec::new())
            } else {
                index::prepare(&self.client, create).await
            }
        })
    }
}

impl fmt::Debug for FirestoreDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirestoreDocuments").field("client", &self.client).finish_non_exhaustive()
    }
}

fn check_size(id: &str, bytes: usize) -> Result<()> {
    if bytes <= DOCUMENT_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "the document {id:?} would have {bytes} bytes in Firestore; the largest it takes has {DOCUMENT_BYTES_MAX}"
    );
    Err(Error::new(ErrorKind::LimitExceeded, message))
}
