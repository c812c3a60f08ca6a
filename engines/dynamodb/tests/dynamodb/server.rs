//! Where the tests' server is, and tables on it that nobody else uses.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType,
    ScalarAttributeType,
};
use keyward_dynamodb::{Credentials, DynamoDb, Options};
use keyward_engine::{Commit, Json, Put, Store};
use keyward_key::Key;
use keyward_testkit::{HttpProxy, TestClock};
use tokio::runtime::{Builder, Runtime};

pub type Item = HashMap<String, AttributeValue>;

/// The server's address.
pub fn address() -> SocketAddr {
    let endpoint = std::env::var("KEYWARD_TEST_DYNAMODB")
        .expect("start the servers with ./test, or set KEYWARD_TEST_DYNAMODB");
    endpoint.strip_prefix("http://").unwrap().parse().unwrap()
}

pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap()
}

/// A client that goes around the engine.
pub fn raw() -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("test-region"))
        .endpoint_url(format!("http://{}", address()))
        .credentials_provider(aws_sdk_dynamodb::config::Credentials::new(
            "keyward", "keyward", None, None, "tests",
        ))
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    Client::from_conf(config.build())
}

/// The name of a table that no other test uses. Dropped, the table is removed.
pub struct Fresh {
    pub table: String,
}

impl Fresh {
    /// No table yet.
    pub fn new() -> Self {
        Self { table: format!("test-{:032x}", fastrand::u128(..)) }
    }

    /// A table for a store. It has no TTL: DynamoDB Local goes by the machine's clock, and tests by their own.
    pub async fn store_table() -> Self {
        let fresh = Self::new();
        fresh.create(&[("p", ScalarAttributeType::B), ("s", ScalarAttributeType::B)]).await;
        fresh
    }

    /// A table of documents, without an index.
    pub async fn documents_table() -> Self {
        let fresh = Self::new();
        fresh.create(&[("_id", ScalarAttributeType::S)]).await;
        fresh
    }

    pub async fn create(&self, key: &[(&str, ScalarAttributeType)]) {
        let kinds = [KeyType::Hash, KeyType::Range];
        let mut request =
            raw().create_table().table_name(&self.table).billing_mode(BillingMode::PayPerRequest);
        for ((name, scalar), kind) in key.iter().zip(kinds) {
            let element = KeySchemaElement::builder().attribute_name(*name).key_type(kind).build();
            let definition = AttributeDefinition::builder()
                .attribute_name(*name)
                .attribute_type(scalar.clone())
                .build();
            request =
                request.key_schema(element.unwrap()).attribute_definitions(definition.unwrap());
        }
        request.send().await.unwrap();
    }

    /// Removes the table, as somebody else would.
    pub async fn remove(&self) {
        raw().delete_table().table_name(&self.table).send().await.unwrap();
    }

    pub fn options(&self) -> Options {
        self.options_through(address())
    }

    pub fn options_through(&self, address: SocketAddr) -> Options {
        // Slow machines are no reason to fail, nor are many tests at once.
        let patience = Duration::from_secs(60);
        Options {
            endpoint: Some(format!("http://{address}")),
            credentials: Some(Credentials::new("keyward", "keyward")),
            connect_timeout: patience,
            answer_timeout: patience,
            retry_budget: patience,
            ..Options::new("test-region", &self.table)
        }
    }

    /// Options for tests that wait for timeouts.
    pub fn impatient(&self, address: SocketAddr) -> Options {
        Options {
            connect_timeout: Duration::from_secs(1),
            answer_timeout: Duration::from_secs(1),
            retry_budget: Duration::from_secs(2),
            ..self.options_through(address)
        }
    }

    pub async fn engine(&self) -> DynamoDb {
        DynamoDb::open_with(self.options(), TestClock::new()).await.unwrap()
    }

    pub async fn store(&self) -> Store {
        Store::new(self.engine().await)
    }

    pub async fn store_through(&self, proxy: &HttpProxy) -> Store {
        let options = self.options_through(proxy.address());
        Store::new(DynamoDb::open_with(options, TestClock::new()).await.unwrap())
    }

    /// All items of the table.
    pub async fn items(&self) -> Vec<Item> {
        raw()
            .scan()
            .table_name(&self.table)
            .consistent_read(true)
            .send()
            .await
            .unwrap()
            .items
            .unwrap_or_default()
    }

    pub async fn put_item(&self, item: Item) {
        raw().put_item().table_name(&self.table).set_item(Some(item)).send().await.unwrap();
    }

    pub async fn item(&self, key: Item) -> Option<Item> {
        let answer = raw()
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key))
            .consistent_read(true)
            .send();
        answer.await.unwrap().item
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let table = self.table.clone();
        // On a thread of its own: the test's may be inside a runtime, which must not be blocked.
        let removing = std::thread::spawn(move || {
            runtime().block_on(async {
                // Tests whose table was never made have nothing to remove.
                let _ = raw().delete_table().table_name(&table).send().await;
            });
        });
        if removing.join().is_err() && !std::thread::panicking() {
            panic!("what the test left could not be removed");
        }
    }
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

pub fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

pub fn put(text: &str) -> Put {
    Put::new(json(text))
}

pub fn putting(text: &str, value: &str) -> Commit {
    Commit::new().put(key(text), put(value))
}

pub fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub fn number(text: &str) -> AttributeValue {
    AttributeValue::N(text.to_owned())
}

pub fn bytes(bytes: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}
