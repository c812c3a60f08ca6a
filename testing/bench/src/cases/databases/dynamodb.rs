//! DynamoDB, by Amazon's own client. A get is a consistent `GetItem`, a put is a
//! `TransactWriteItems` of one item with a token.

use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, Credentials, Region, StalledStreamProtectionConfig,
};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnValuesOnConditionCheckFailure as OnFailure, TransactWriteItem,
};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use bytes::Bytes;
use keyward_dynamodb::{DynamoDb, Options};
use keyward_engine::{BoxFuture, Store};
use keyward_key::Key;

use super::loaded::{Client, Opened, RawClient, Records, unused_name};
use crate::Result;
use crate::server::Server;

/// DynamoDB Local takes any.
const REGION: &str = "bench-region";
const USER: &str = "keyward";

type Item = HashMap<String, AttributeValue>;

struct Raw {
    sdk: aws_sdk_dynamodb::Client,
    table: String,
    records: Arc<Records>,
    places: Vec<Place>,
}

/// The partition and the sort key of a record.
struct Place {
    partition: Vec<u8>,
    sort: Vec<u8>,
}

/// A store in a new table, and a raw client of it.
pub async fn open(records: &Arc<Records>) -> Result<Opened> {
    let endpoint = Server::DynamoDb.address()?;
    let table = unused_name();
    let options = Options {
        endpoint: Some(endpoint.clone()),
        credentials: Some(keyward_dynamodb::Credentials::new(USER, USER)),
        create: true,
        ..Options::new(REGION, &table)
    };
    let sdk = client(&endpoint, &options);
    let store = Store::new(DynamoDb::open(options).await?);
    let places = records.keys.iter().map(Place::of).collect();
    Ok((store, Arc::new(Raw { sdk, table, records: records.clone(), places })))
}

/// A client with the settings of the adapter's own.
fn client(endpoint: &str, options: &Options) -> aws_sdk_dynamodb::Client {
    let http = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(options.connect_timeout)
        .operation_attempt_timeout(options.answer_timeout);
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(http)
        .region(Region::new(REGION))
        .endpoint_url(endpoint)
        .credentials_provider(Credentials::new(USER, USER, None, None, "bench"))
        .retry_config(RetryConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .timeout_config(timeouts.build());
    aws_sdk_dynamodb::Client::from_conf(config.build())
}

impl Place {
    /// By the layout of `engines/dynamodb`: the first segment of the key is the partition.
    fn of(key: &Key) -> Self {
        let encoded = key.as_bytes();
        let root = encoded.split(|byte| *byte == 0).next().unwrap_or_default();
        let rest = encoded.get(root.len() + 1..).unwrap_or_default();
        Self { partition: [b"e", root].concat(), sort: [&[1], rest].concat() }
    }

    fn item(&self) -> Item {
        HashMap::from([
            ("p".to_owned(), AttributeValue::B(Blob::new(&self.partition[..]))),
            ("s".to_owned(), AttributeValue::B(Blob::new(&self.sort[..]))),
        ])
    }
}

/// Random, as versions and tokens are.
fn unused() -> String {
    format!("{:032x}", fastrand::u128(..))
}

impl Client for Raw {
    fn get(&self, record: usize) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(async move {
            let request = self.sdk.get_item().table_name(&self.table).consistent_read(true);
            let answer = request.set_key(Some(self.places[record].item())).send().await?;
            Ok(match answer.item.and_then(|mut item| item.remove("j")) {
                Some(AttributeValue::S(value)) => Some(value.into()),
                _ => None,
            })
        })
    }

    fn put(&self, record: usize, value: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut item = self.places[record].item();
            let value = self.records.values[value].as_str().to_owned();
            item.insert("v".to_owned(), AttributeValue::S(unused()));
            item.insert("j".to_owned(), AttributeValue::S(value));
            let put = Put::builder()
                .table_name(&self.table)
                .set_item(Some(item))
                .return_values_on_condition_check_failure(OnFailure::AllOld);
            let item = TransactWriteItem::builder().put(put.build()?).build();
            let request = self.sdk.transact_write_items().client_request_token(unused());
            request.transact_items(item).send().await?;
            Ok(())
        })
    }
}

impl RawClient for Raw {
    fn remove(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            self.sdk.delete_table().table_name(&self.table).send().await?;
            Ok(())
        })
    }
}
