//! Tables: what one is, and making one.

use std::time::Duration;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType,
    ScalarAttributeType, StreamSpecification, StreamViewType, TableDescription, TableStatus,
    TimeToLiveSpecification, TimeToLiveStatus,
};
use keyward_engine::{Error, ErrorKind, Result};
use tokio::time::{Instant, sleep};

use crate::client::Client;
use crate::error::{Cause, Failure};
use crate::item::{self, Item, TTL};
use crate::layout::{HEADER, HEADER_SORT, Layout, PARTITION, Place, SORT};
use crate::number;
use crate::steps::internal;
use crate::version;

/// What this code reads and writes.
const FORMAT: i64 = 1;
const FORMAT_NAME: &str = "format";
const SEGMENTS_NAME: &str = "partition_segments";
const SEGMENTS_DEFAULT: usize = 1;
const ID_NAME: &str = "id";

/// How long to wait for a table that is being made.
pub(crate) const MADE_IN: Duration = Duration::from_secs(5 * 60);
const LOOK_FIRST: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(3);
const DOING: &str = "cannot open the table";

/// What the header of a table says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreTable {
    pub(crate) layout: Layout,
    /// Tells a table from one of the same name that was made before it. Older tables have none.
    pub(crate) id: Option<String>,
}

/// What the place of the header holds.
enum Header {
    Store(StoreTable),
    /// The table can be a store, and is none yet.
    Missing,
    NoTable,
}

impl Client {
    /// The table's store, which is made if there is none.
    pub(crate) async fn prepare(&self, create: bool) -> Result<StoreTable> {
        match self.header().await? {
            Header::Store(table) => return Ok(table),
            Header::Missing => {
                if !self.is_empty().await? {
                    // Somebody else may have made it a store just now, and written to it.
                    return match self.header().await? {
                        Header::Store(table) => Ok(table),
                        Header::Missing | Header::NoTable => Err(self.not_empty()),
                    };
                }
                if create {
                    self.enable_ttl().await?;
                }
            }
            Header::NoTable => {
                let is_there = self.wait_until_made(MADE_IN).await?.is_some();
                if !is_there && !create {
                    return Err(self.no_table());
                }
                if !is_there {
                    self.create_table(TableKey::STORE, Vec::new(), Some(stream()?)).await?;
                    self.wait_until_made(MADE_IN).await?;
                }
                if create {
                    self.enable_ttl().await?;
                }
            }
        }
        // Last, so that a table whose making was interrupted is made ready by the next who opens it.
        self.write_header().await?;
        match self.header().await? {
            Header::Store(table) => Ok(table),
            Header::Missing | Header::NoTable => Err(self.no_table()),
        }
    }

    /// The table's store, if there is one.
    pub(crate) async fn existing(&self) -> Result<Option<StoreTable>> {
        match self.header().await? {
            Header::Store(table) => Ok(Some(table)),
            Header::Missing | Header::NoTable => Ok(None),
        }
    }

    async fn header(&self) -> Result<Header> {
        let request = || {
            let request = self.sdk.get_item().table_name(&self.options.table);
            request.set_key(Some(item::at(&header_place()))).consistent_read(true).send()
        };
        let answer = match self.send(DOING, request).await {
            Ok(answer) => answer,
            Err(failure) if failure.is("ResourceNotFoundException") => return Ok(Header::NoTable),
            Err(failure) if failure.is("ValidationException") => {
                return Err(self.foreign(failure).await);
            }
            Err(failure) => return Err(failure.into()),
        };
        let Some(header) = answer.item.filter(|item| !item.is_empty()) else {
            return Ok(Header::Missing);
        };
        let number = |name| {
            let text = header.get(name).and_then(|value| value.as_n().ok());
            text.and_then(|text| number::integer(text))
        };
        let table = &self.options.table;
        match number(FORMAT_NAME) {
            Some(FORMAT) => {}
            Some(other) => {
                let message = format!(
                    "the table {table:?} has the format {other}, and this release reads {FORMAT}"
                );
                return Err(Error::new(ErrorKind::Misplaced, message)
                    .advise("Use a newer release of Keyward."));
            }
            None => {
                return Err(item::corrupt(&format!(
                    "the header of the table {table:?} has no format"
                )));
            }
        }
        let segments = number(SEGMENTS_NAME).and_then(|number| usize::try_from(number).ok());
        let Some(segments) = segments.filter(|segments| *segments > 0) else {
            let message = format!("the header of the table {table:?} has no {SEGMENTS_NAME}");
            return Err(item::corrupt(&message));
        };
        match self.options.partition_segments {
            Some(wanted) if wanted != segments => {
                let message = format!(
                    "the table {table:?} was made with partition_segments={segments}, not {wanted}, which cannot be changed"
                );
                Err(Error::new(ErrorKind::Misplaced, message)
                    .advise("Leave the option out, or copy the store into a new table."))
            }
            _ => {
                let id = header.get(ID_NAME).and_then(|value| value.as_s().ok()).cloned();
                Ok(Header::Store(StoreTable { layout: Layout { segments }, id }))
            }
        }
    }

    /// Makes a table a store, unless somebody else just did.
    async fn write_header(&self) -> Result<()> {
        let segments = self.options.partition_segments.unwrap_or(SEGMENTS_DEFAULT);
        let mut header: Item = item::at(&header_place());
        header.insert(FORMAT_NAME.to_owned(), item::integer(FORMAT));
        let segments = i64::try_from(segments).unwrap_or(i64::MAX);
        header.insert(SEGMENTS_NAME.to_owned(), item::integer(segments));
        header.insert(ID_NAME.to_owned(), AttributeValue::S(version::unused()?));
        let request = || {
            let request = self.sdk.put_item().table_name(&self.options.table);
            request
                .set_item(Some(header.clone()))
                .condition_expression(format!("attribute_not_exists({PARTITION})"))
                .send()
        };
        match self.send(DOING, request).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.is("ConditionalCheckFailedException") => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Whether the table holds nothing at all.
    async fn is_empty(&self) -> Result<bool> {
        let request = || {
            let request = self.sdk.scan().table_name(&self.options.table);
            request.limit(1).consistent_read(true).send()
        };
        let answer = self.send(DOING, request).await?;
        Ok(answer.items().is_empty() && answer.last_evaluated_key.is_none())
    }

    /// What to say of a table with the right key that holds something else.
    fn not_empty(&self) -> Error {
        let message = format!(
            "the table {:?} is no Keyward store: it has items, but no header of a store",
            self.options.table
        );
        Error::new(ErrorKind::Misplaced, message).advise(
            "Name another table or an empty one. If it was a store whose header was deleted, restore it from a backup.",
        )
    }

    /// What to say of a table whose key is another.
    async fn foreign(&self, failure: Failure) -> Error {
        let described = match self.describe().await {
            Ok(Some(description)) => key_text(&description),
            Ok(None) | Err(_) => return failure.into(),
        };
        let message = format!(
            "the table {:?} is no Keyward store: its key is {described}, not {PARTITION} (B) and {SORT} (B)",
            self.options.table
        );
        Error::new(ErrorKind::Misplaced, message)
            .advise("Name another table, or add layout=document for a table of agent data.")
    }

    /// What to say if there is no table.
    pub(crate) fn no_table(&self) -> Error {
        let (table, region) = (&self.options.table, &self.options.region);
        let message = format!("there is no table {table:?} in {region}");
        Error::new(ErrorKind::Misplaced, message).advise(format!(
            "Add create=true to the store's URL to create it. It is billed on demand: each write and each strongly \
             consistent read costs twice what a plain one does, plus storage; an empty table costs nothing. Or create \
             it yourself with the key {PARTITION} (B, partition) and {SORT} (B, sort), TTL on {TTL}, and a stream \
             (KEYS_ONLY) if it is to be watched."
        ))
    }

    pub(crate) async fn describe(&self) -> Result<Option<TableDescription>> {
        let request = || self.sdk.describe_table().table_name(&self.options.table).send();
        match self.send(DOING, request).await {
            Ok(answer) => Ok(answer.table),
            Err(failure) if failure.is("ResourceNotFoundException") => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Waits while the table is being made or changed; none if there is no table.
    pub(crate) async fn wait_until_made(&self, time: Duration) -> Result<Option<TableDescription>> {
        let is_ready = |table: &TableDescription| table.table_status != Some(TableStatus::Creating);
        self.wait_until(time, is_ready).await
    }

    /// Waits until the table is as it should be; none if there is no table.
    pub(crate) async fn wait_until(
        &self,
        time: Duration,
        is_ready: impl Fn(&TableDescription) -> bool,
    ) -> Result<Option<TableDescription>> {
        let (started, mut pause) = (Instant::now(), LOOK_FIRST);
        loop {
            match self.describe().await? {
                None => return Ok(None),
                Some(table) if is_ready(&table) => return Ok(Some(table)),
                Some(_) if started.elapsed() > time => {
                    let message = format!(
                        "the table {:?} is still not ready after {time:?}",
                        self.options.table
                    );
                    let advice = "DynamoDB goes on by itself: try again later.";
                    return Err(Error::new(ErrorKind::Unavailable, message).advise(advice));
                }
                Some(_) => sleep(pause).await,
            }
            pause = (pause * 2).min(LOOK_MAX);
        }
    }

    /// Begins to create the table, unless somebody else just did.
    pub(crate) async fn create_table(
        &self,
        key: TableKey,
        indexes: Vec<aws_sdk_dynamodb::types::GlobalSecondaryIndex>,
        stream: Option<StreamSpecification>,
    ) -> Result<()> {
        let (schema, definitions) = key.parts()?;
        let indexes = (!indexes.is_empty()).then_some(indexes);
        let request = || {
            let request = self.sdk.create_table().table_name(&self.options.table);
            request
                .billing_mode(BillingMode::PayPerRequest)
                .set_key_schema(Some(schema.clone()))
                .set_attribute_definitions(Some(definitions.clone()))
                .set_global_secondary_indexes(indexes.clone())
                .set_stream_specification(stream.clone())
                .send()
        };
        match self.send("cannot create the table", request).await {
            Ok(_) => {}
            Err(failure) if failure.is("ResourceInUseException") => {}
            Err(failure) => return Err(failure.into()),
        }
        // For a moment it may not be known to exist.
        let (started, mut pause) = (Instant::now(), LOOK_FIRST);
        while self.describe().await?.is_none() && started.elapsed() < MADE_IN {
            sleep(pause).await;
            pause = (pause * 2).min(LOOK_MAX);
        }
        Ok(())
    }

    /// Lets DynamoDB delete what has expired.
    async fn enable_ttl(&self) -> Result<()> {
        let table = &self.options.table;
        let request = || self.sdk.describe_time_to_live().table_name(table).send();
        let described = self.send(DOING, request).await?;
        let status =
            described.time_to_live_description.and_then(|described| described.time_to_live_status);
        if matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)) {
            return Ok(());
        }
        let specification =
            TimeToLiveSpecification::builder().enabled(true).attribute_name(TTL).build();
        let specification = specification.map_err(|error| internal(&error.to_string()))?;
        let request = || {
            let request = self.sdk.update_time_to_live().table_name(table);
            request.time_to_live_specification(specification.clone()).send()
        };
        match self.send("cannot switch on TTL", request).await {
            Ok(_) => Ok(()),
            // Somebody else just did.
            Err(failure)
                if failure.is("ValidationException") && matches!(failure.cause, Cause::Refused) =>
            {
                if failure.error.message().contains("already enabled") {
                    Ok(())
                } else {
                    Err(failure.into())
                }
            }
            Err(failure) => Err(failure.into()),
        }
    }
}

/// The attributes of a table's key, and of its indexes' keys.
pub(crate) struct TableKey {
    pub(crate) partition: (&'static str, ScalarAttributeType),
    pub(crate) sort: Option<(&'static str, ScalarAttributeType)>,
    /// Attributes that only indexes use.
    pub(crate) others: Vec<(&'static str, ScalarAttributeType)>,
}

impl TableKey {
    const STORE: Self = Self {
        partition: (PARTITION, ScalarAttributeType::B),
        sort: Some((SORT, ScalarAttributeType::B)),
        others: Vec::new(),
    };

    fn parts(&self) -> Result<(Vec<KeySchemaElement>, Vec<AttributeDefinition>)> {
        let mut schema = vec![element(self.partition.0, KeyType::Hash)?];
        if let Some((name, _)) = &self.sort {
            schema.push(element(name, KeyType::Range)?);
        }
        let attributes = std::iter::once(&self.partition).chain(&self.sort).chain(&self.others);
        let definitions = attributes.map(|(name, kind)| definition(name, kind.clone()));
        Ok((schema, definitions.collect::<Result<Vec<_>>>()?))
    }
}

pub(crate) fn element(name: &str, kind: KeyType) -> Result<KeySchemaElement> {
    let element = KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    element.map_err(|error| internal(&error.to_string()))
}

pub(crate) fn definition(name: &str, kind: ScalarAttributeType) -> Result<AttributeDefinition> {
    let definition =
        AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build();
    definition.map_err(|error| internal(&error.to_string()))
}

/// A table's key, such as `_id (S)`.
pub(crate) fn key_text(table: &TableDescription) -> String {
    let kind = |name: &str| {
        let found = table.attribute_definitions().iter().find(|it| it.attribute_name() == name);
        found.map_or("?", |found| found.attribute_type().as_str())
    };
    let parts = table.key_schema().iter().map(KeySchemaElement::attribute_name);
    let parts: Vec<String> = parts.map(|name| format!("{name} ({})", kind(name))).collect();
    parts.join(" and ")
}

/// The stream of a new table. The keys are enough: who watches reads the values from the table.
fn stream() -> Result<StreamSpecification> {
    let stream = StreamSpecification::builder().stream_enabled(true);
    let stream = stream.stream_view_type(StreamViewType::KeysOnly).build();
    stream.map_err(|error| internal(&error.to_string()))
}

fn header_place() -> Place {
    Place { partition: HEADER.to_vec(), sort: HEADER_SORT.to_vec() }
}
