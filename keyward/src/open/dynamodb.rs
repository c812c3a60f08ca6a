//! DynamoDB.

use std::sync::Arc;

use keyward_dynamodb::{DynamoDb, DynamoDbDocuments, Options};
use keyward_engine::{Capabilities, Documents, Result, StoreUrl};

use super::request::opened;
use super::{Absent, Opened};

pub(super) fn capabilities(url: StoreUrl) -> Result<Capabilities> {
    Ok(Options::from_url(url)?.capabilities())
}

pub(super) async fn open(url: StoreUrl, absent: Absent) -> Result<Opened> {
    let options = Options::from_url(url)?;
    match absent {
        Absent::Create => opened(Some(DynamoDb::open(options).await?)),
        Absent::Leave => opened(DynamoDb::open_existing(options).await?),
    }
}

pub(super) async fn documents(url: StoreUrl) -> Result<Arc<dyn Documents>> {
    Ok(Arc::new(DynamoDbDocuments::open(Options::from_url(url)?).await?))
}
