//! The index of documents by owner and group.

use std::time::Duration;

use aws_sdk_dynamodb::types::{
    BillingMode, CreateGlobalSecondaryIndexAction, GlobalSecondaryIndex,
    GlobalSecondaryIndexDescription, GlobalSecondaryIndexUpdate, IndexStatus, KeyType, Projection,
    ProjectionType, ProvisionedThroughput, ScalarAttributeType, TableDescription, TableStatus,
};
use keyward_engine::{Error, ErrorKind, Result};

use super::{DynamoDbDocuments, GROUP, ID, OWNER};
use crate::steps::internal;
use crate::table::{TableKey, definition, element, key_text};

/// The index's name where we make it. An index of another name with the same key serves as well.
const NAME: &str = "userId-namespace-index";
/// How long to wait for an index. DynamoDB reads the whole table for it.
const MADE_IN: Duration = Duration::from_secs(60 * 60);

/// What [`DynamoDbDocuments::prepare`] found.
enum Missing {
    Nothing,
    Index,
    Table,
}

impl DynamoDbDocuments {
    /// The name of the index, which is looked for until it is found.
    pub(super) async fn index(&self) -> Result<String> {
        if let Some(name) = self.index.get() {
            return Ok(name.clone());
        }
        let table = self.client.describe().await?.ok_or_else(|| self.no_table())?;
        let found = found(&table).filter(|index| is_active(index));
        let name = found.and_then(GlobalSecondaryIndexDescription::index_name).ok_or_else(|| {
            let message = format!(
                "the table {:?} has no active index with the key {OWNER} (partition) and {GROUP} (sort), by which \
                 documents are listed",
                self.client.options.table
            );
            Error::new(ErrorKind::Misplaced, message).advise("Create the index that the layout needs, then try again.")
        })?;
        Ok(self.index.get_or_init(|| name.to_owned()).clone())
    }

    pub(super) async fn prepare_index(&self, create: bool) -> Result<Vec<String>> {
        let (missing, sentence) = self.missing().await?;
        let Some(sentence) = sentence else { return Ok(Vec::new()) };
        if create {
            match missing {
                Missing::Nothing => {}
                Missing::Table => self.create_documents_table().await?,
                Missing::Index => self.create_index().await?,
            }
            let is_ready = |table: &TableDescription| {
                table.table_status == Some(TableStatus::Active)
                    && found(table).is_some_and(is_active)
            };
            self.client.wait_until(MADE_IN, is_ready).await?.ok_or_else(|| self.no_table())?;
        }
        Ok(vec![sentence])
    }

    /// What is missing, and a sentence that says what would be created.
    async fn missing(&self) -> Result<(Missing, Option<String>)> {
        let table = &self.client.options.table;
        let Some(description) = self.client.describe().await? else {
            let sentence = format!(
                "the table {table:?} in {} with the key {ID} (S), billed on demand, and its index {NAME} by {OWNER} and \
                 {GROUP} with all attributes, which doubles what storage and writes cost",
                self.client.options.region
            );
            return Ok((Missing::Table, Some(sentence)));
        };
        self.check_key(&description)?;
        Ok(match found(&description) {
            Some(index) if is_active(index) => (Missing::Nothing, None),
            Some(index) => {
                let name = index.index_name().unwrap_or(NAME);
                let sentence =
                    format!("the index {name} of the table {table:?}, which is being built");
                (Missing::Nothing, Some(sentence))
            }
            None => {
                let sentence = format!(
                    "the index {NAME} of the table {table:?} by {OWNER} and {GROUP} with all attributes, which doubles what \
                     storage and writes cost; DynamoDB reads the whole table once to build it"
                );
                (Missing::Index, Some(sentence))
            }
        })
    }

    /// Refuses a table whose key is another.
    pub(super) fn check_key(&self, table: &TableDescription) -> Result<()> {
        let key = key_text(table);
        if key == format!("{ID} (S)") {
            return Ok(());
        }
        let message = format!(
            "the table {:?} has no documents by id: its key is {key}, not {ID} (S)",
            self.client.options.table
        );
        Err(Error::new(ErrorKind::Misplaced, message)
            .advise("Name another table, or leave out layout=document for a Keyward store."))
    }

    pub(super) fn no_table(&self) -> Error {
        let (table, region) = (&self.client.options.table, &self.client.options.region);
        let message = format!("there is no table {table:?} in {region}");
        Error::new(ErrorKind::Misplaced, message)
            .advise("Name the table that has the documents, or let the layout's table be created.")
    }

    async fn create_documents_table(&self) -> Result<()> {
        let index = GlobalSecondaryIndex::builder()
            .index_name(NAME)
            .key_schema(element(OWNER, KeyType::Hash)?)
            .key_schema(element(GROUP, KeyType::Range)?)
            .projection(everything())
            .build()
            .map_err(|error| internal(&error.to_string()))?;
        let key = TableKey {
            partition: (ID, ScalarAttributeType::S),
            sort: None,
            others: vec![(OWNER, ScalarAttributeType::S), (GROUP, ScalarAttributeType::S)],
        };
        self.client.create_table(key, vec![index], None).await
    }

    async fn create_index(&self) -> Result<()> {
        let table = self.client.describe().await?.ok_or_else(|| self.no_table())?;
        let action = CreateGlobalSecondaryIndexAction::builder()
            .index_name(NAME)
            .key_schema(element(OWNER, KeyType::Hash)?)
            .key_schema(element(GROUP, KeyType::Range)?)
            .projection(everything())
            .set_provisioned_throughput(throughput(&table)?)
            .build()
            .map_err(|error| internal(&error.to_string()))?;
        let update = GlobalSecondaryIndexUpdate::builder().create(action).build();
        let request = || {
            let request = self.client.sdk.update_table().table_name(&self.client.options.table);
            request
                .set_attribute_definitions(definitions().ok())
                .global_secondary_index_updates(update.clone())
                .send()
        };
        match self.client.send("cannot create the index", request).await {
            Ok(_) => Ok(()),
            // Somebody else just did.
            Err(failure) if failure.is("ResourceInUseException") => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

fn definitions() -> Result<Vec<aws_sdk_dynamodb::types::AttributeDefinition>> {
    [ID, OWNER, GROUP].into_iter().map(|name| definition(name, ScalarAttributeType::S)).collect()
}

/// All attributes: other programs that list by the index read more of it than its key.
fn everything() -> Projection {
    Projection::builder().projection_type(ProjectionType::All).build()
}

/// The index, by its key: its name is the other program's choice.
fn found(table: &TableDescription) -> Option<&GlobalSecondaryIndexDescription> {
    table.global_secondary_indexes().iter().find(|index| {
        let key = index.key_schema().iter().map(|part| (part.attribute_name(), part.key_type()));
        key.eq([(OWNER, &KeyType::Hash), (GROUP, &KeyType::Range)])
    })
}

fn is_active(index: &GlobalSecondaryIndexDescription) -> bool {
    index.index_status() == Some(&IndexStatus::Active)
}

/// The capacity that an index needs of its own, in a table that is not billed on demand: the table's.
fn throughput(table: &TableDescription) -> Result<Option<ProvisionedThroughput>> {
    let mode = table.billing_mode_summary().and_then(|summary| summary.billing_mode());
    if mode == Some(&BillingMode::PayPerRequest) {
        return Ok(None);
    }
    let Some(table) = table.provisioned_throughput() else { return Ok(None) };
    let throughput = ProvisionedThroughput::builder()
        .read_capacity_units(table.read_capacity_units().unwrap_or(1).max(1))
        .write_capacity_units(table.write_capacity_units().unwrap_or(1).max(1));
    throughput.build().map(Some).map_err(|error| internal(&error.to_string()))
}
