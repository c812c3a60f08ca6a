//! Tables of another program, with one item per document.

mod attribute;
mod index;
mod swap;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_sdk_dynamodb::types::{KeysAndAttributes, TransactWriteItem};
use keyward_engine::{
    BoxFuture, Cursor, Document, DocumentLimits, DocumentList, DocumentPage, DocumentRow,
    Documents, Error, ErrorKind, Json, Result, Swapped, SystemClock,
};

use crate::Options;
use crate::client::{Client, Pace, Sent, unknown};
use crate::item::{self, Item};
use crate::steps::internal;

const ID: &str = "_id";
const OWNER: &str = "userId";
const GROUP: &str = "namespace";

/// Documents in a DynamoDB table of another program: the key is `_id`, and a global secondary index has `userId` as its
/// partition and `namespace` as its sort key.
///
/// Fields are attributes of their own, as that program writes them: numbers are numbers, with up to 38 digits, and
/// whatever DynamoDB cannot hold exactly is refused. Sets and binary values, which JSON does not have, are
/// shown as arrays and as base64 text; they stay what they are until their field is written.
///
/// A document is read at once after it was written. The index follows after
/// [`DynamoDbDocuments::LIST_LAG`] or so.
#[derive(Clone)]
pub struct DynamoDbDocuments {
    client: Client,
    index: Arc<OnceLock<String>>,
}

impl DynamoDbDocuments {
    /// About how late lists are. DynamoDB promises no bound; it is usually far less.
    pub const LIST_LAG: Duration = Duration::from_secs(1);

    const LIMITS: DocumentLimits = DocumentLimits {
        engine: "dynamodb",
        id_bytes_max: 2_048,
        // With the longest id, an item of 400 KiB. DynamoDB counts in another way, and refuses what is too large.
        document_bytes_max: 400_000,
        get_ids_max: 100,
        list_rows_max: 1_000,
    };

    /// Opens a table. One that does not exist is made by [`Documents::prepare`]; one with another key is refused.
    pub async fn open(options: Options) -> Result<Self> {
        let client = Client::new(options, Arc::new(SystemClock)).await?;
        let documents = Self { client, index: Arc::default() };
        if let Some(table) = documents.client.describe().await? {
            documents.check_key(&table)?;
        }
        Ok(documents)
    }

    async fn read(&self, ids: &[String]) -> Result<Vec<Option<Document>>> {
        let mut seen = HashSet::new();
        // No item has such an id, and asking for one is refused.
        let possible = |id: &&String| !id.is_empty() && id.len() <= Self::LIMITS.id_bytes_max;
        let distinct: Vec<&String> =
            ids.iter().filter(possible).filter(|id| seen.insert(*id)).collect();
        let found = match distinct[..] {
            [] => HashMap::new(),
            [id] => self.read_one(id).await?.map(|item| (id.clone(), item)).into_iter().collect(),
            _ => self.read_many(&distinct).await?,
        };
        let documents = ids.iter().map(|id| {
            let Some(item) = found.get(id) else { return Ok(None) };
            let (fields, foreign) = attribute::fields(item, ID)?;
            Ok(Some(Document { id: id.clone(), fields, revision: foreign.to_text().into() }))
        });
        documents.collect()
    }

    async fn read_one(&self, id: &str) -> Result<Option<Item>> {
        let request = || {
            let request = self.client.sdk.get_item().table_name(&self.client.options.table);
            request.set_key(Some(id_key(id))).consistent_read(true).send()
        };
        let answer = self.client.send("cannot read a document", request).await;
        let answer = answer.map_err(|failure| self.refusal(failure.into()))?;
        Ok(answer.item.filter(|item| !item.is_empty()))
    }

    async fn read_many(&self, ids: &[&String]) -> Result<HashMap<String, Item>> {
        let table = &self.client.options.table;
        let mut found = HashMap::with_capacity(ids.len());
        let mut left: Vec<Item> = ids.iter().map(|id| id_key(id)).collect();
        let mut pace = Pace::new(self.client.options.retry_budget);
        while !left.is_empty() {
            let keys = KeysAndAttributes::builder().set_keys(Some(left)).consistent_read(true);
            let keys = keys.build().map_err(|error| internal(&error.to_string()))?;
            let request =
                || self.client.sdk.batch_get_item().request_items(table, keys.clone()).send();
            let answer = self.client.send("cannot read documents", request).await;
            let answer = answer.map_err(|failure| self.refusal(failure.into()))?;
            let items =
                answer.responses.and_then(|mut items| items.remove(table)).unwrap_or_default();
            let is_progress = !items.is_empty();
            found.extend(items.into_iter().filter_map(|item| Some((text(&item, ID)?, item))));
            let unread = answer.unprocessed_keys.and_then(|mut unread| unread.remove(table));
            left = unread.map(|unread| unread.keys).unwrap_or_default();
            // What did not fit into the answer is asked for at once.
            if !left.is_empty() && !is_progress && !pace.again().await {
                let message = "cannot read documents: DynamoDB has no capacity left for this table";
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
        }
        Ok(found)
    }

    async fn swap(&self, item: TransactWriteItem, revision: String) -> Result<Swapped> {
        let sent = self.client.transact(vec![item]).await;
        match sent.map_err(|error| self.refusal(error))? {
            Sent::Applied => Ok(Swapped::Applied { revision: revision.into() }),
            // A document can become again what it was, and then a late attempt would be done.
            Sent::Canceled { doubtful: true, .. } => Err(unknown(
                "cannot write a document: it changed, and an earlier attempt may still arrive",
            )),
            Sent::Canceled { .. } => Ok(Swapped::Conflicted),
        }
    }

    async fn page(&self, list: &DocumentList) -> Result<DocumentPage> {
        // Keys of an index are never empty.
        if list.owner.is_empty() || list.group.as_deref() == Some("") {
            return Ok(DocumentPage::default());
        }
        let index = self.index().await?;
        let after = list.after.as_ref().map(|cursor| start_key(cursor, &list.owner)).transpose()?;
        let limit = list.limit.clamp(1, Self::LIMITS.list_rows_max);
        let request = || {
            let request = self.client.sdk.query().table_name(&self.client.options.table);
            let request = request
                .index_name(&index)
                .expression_attribute_names("#id", ID)
                .expression_attribute_names("#owner", OWNER)
                .expression_attribute_names("#group", GROUP)
                .expression_attribute_values(":owner", item::string(&list.owner))
                .projection_expression("#id, #group")
                .set_exclusive_start_key(after.clone())
                .limit(i32::try_from(limit).unwrap_or(i32::MAX));
            match &list.group {
                None => request.key_condition_expression("#owner = :owner"),
                Some(group) => request
                    .key_condition_expression("#owner = :owner AND #group = :group")
                    .expression_attribute_values(":group", item::string(group)),
            }
            .send()
        };
        let answer = self.client.send("cannot list documents", request).await;
        let answer = answer.map_err(|failure| self.refusal(failure.into()))?;
        let next = answer.last_evaluated_key.as_ref().map(cursor).transpose()?;
        let items = answer.items.unwrap_or_default();
        let found: Option<Vec<(String, String)>> =
            items.iter().map(|item| Some((text(item, ID)?, text(item, GROUP)?))).collect();
        let found = found.ok_or_else(|| item::corrupt("the index has a row without its key"))?;
        let mut documents = HashMap::new();
        if list.with_documents {
            // From the table, since the index may be late and may have only some of the attributes.
            let ids: Vec<String> = found.iter().map(|(id, _)| id.clone()).collect();
            for some in ids.chunks(Self::LIMITS.get_ids_max) {
                let read = self.read(some).await?.into_iter().flatten();
                documents.extend(read.map(|document| (document.id.clone(), document)));
            }
        }
        let rows = found.into_iter().filter_map(|(id, group)| {
            let document = documents.remove(&id);
            let is_gone = list.with_documents && document.is_none();
            (!is_gone).then_some(DocumentRow { id, group, document })
        });
        Ok(DocumentPage { rows: rows.collect(), next })
    }

    /// An error, with what can be done about it here.
    fn refusal(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Misplaced => self.no_table(),
            _ => error,
        }
    }
}

impl Documents for DynamoDbDocuments {
    fn limits(&self) -> &DocumentLimits {
        &Self::LIMITS
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
            check_id(id)?;
            let table = &self.client.options.table;
            let (item, revision) = match replaced {
                None => (swap::created(table, id, fields)?, String::new()),
                Some(replaced) => swap::changed(table, replaced, fields)?,
            };
            self.swap(item, revision).await
        })
    }

    fn delete<'a>(&'a self, removed: &'a Document) -> BoxFuture<'a, Result<Swapped>> {
        Box::pin(async move {
            let item = swap::deleted(&self.client.options.table, removed)?;
            self.swap(item, String::new()).await
        })
    }

    fn list<'a>(&'a self, list: &'a DocumentList) -> BoxFuture<'a, Result<DocumentPage>> {
        Box::pin(self.page(list))
    }

    fn list_lag(&self) -> Option<Duration> {
        Some(Self::LIST_LAG)
    }

    fn prepare(&self, create: bool) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(self.prepare_index(create))
    }
}

impl fmt::Debug for DynamoDbDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDbDocuments")
            .field("region", &self.client.options.region)
            .field("table", &self.client.options.table)
            .finish_non_exhaustive()
    }
}

fn check_id(id: &str) -> Result<()> {
    let (bytes, most) = (id.len(), DynamoDbDocuments::LIMITS.id_bytes_max);
    if bytes == 0 {
        return Err(Error::new(ErrorKind::Invalid, "the id of a document must not be empty"));
    }
    if bytes > most {
        let message =
            format!("the id of a document must be at most {most} bytes long, not {bytes}");
        return Err(Error::new(ErrorKind::LimitExceeded, message));
    }
    Ok(())
}

fn id_key(id: &str) -> Item {
    HashMap::from([(ID.to_owned(), item::string(id))])
}

fn text(item: &Item, name: &str) -> Option<String> {
    item.get(name)?.as_s().ok().cloned()
}

/// Where a page of the index ended: the id and the group, as a JSON array.
fn cursor(last: &Item) -> Result<Cursor> {
    let place = text(last, ID).zip(text(last, GROUP));
    let place = place.ok_or_else(|| item::corrupt("the index ended a page without its key"))?;
    let place = Json::from_value(&place).map_err(|error| internal(&error.to_string()))?;
    Ok(Cursor::new(place.as_bytes().to_vec()))
}

fn start_key(cursor: &Cursor, owner: &str) -> Result<Item> {
    let place: (String, String) = serde_json::from_slice(cursor.as_bytes()).map_err(|_| {
        Error::new(ErrorKind::Invalid, "the cursor does not belong to a list of documents")
    })?;
    let mut key = id_key(&place.0);
    key.insert(GROUP.to_owned(), item::string(&place.1));
    key.insert(OWNER.to_owned(), item::string(owner));
    Ok(key)
}
