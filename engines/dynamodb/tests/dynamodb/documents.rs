//! What every adapter of documents must show.

use std::sync::Arc;

use keyward_dynamodb::DynamoDbDocuments;
use keyward_engine::{BoxFuture, Documents};
use keyward_testkit::{DocumentsPlace, document_conformance};
use tokio::sync::OnceCell;

use crate::server::Fresh;

struct InTable(OnceCell<Fresh>);

impl DocumentsPlace for InTable {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Documents>> {
        Box::pin(async {
            let fresh = self.0.get_or_init(Fresh::documents_table).await;
            let documents = DynamoDbDocuments::open(fresh.options()).await;
            Arc::new(documents.unwrap()) as Arc<dyn Documents>
        })
    }
}

document_conformance!(dynamodb, InTable(OnceCell::new()));
