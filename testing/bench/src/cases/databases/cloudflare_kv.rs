//! Workers KV, over its REST API. A get is a bulk read of one name. Puts that wait together go out
//! in one bulk write, in as many at a time as the adapter sends.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::{Either, select};
use keyward_cloudflare_kv::{CloudflareKv, Options, Token};
use keyward_engine::{BoxFuture, Store};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{Semaphore, oneshot};

use super::http::{self, answer};
use super::loaded::{Client, Opened, RawClient, Records, unused_name};
use crate::Result;
use crate::server::Server;

/// The only one that the test server takes.
const TOKEN: &str = "keyward-test-token";
const ACCOUNT: &str = "bench";
/// How many bulk writes are under way at the same time.
const BATCHES_MAX: usize = 4;

struct Raw {
    http: reqwest::Client,
    records: Arc<Records>,
    namespace: Url,
    bulk: Url,
    bulk_get: Url,
    names: Vec<String>,
    waiting: Mutex<Vec<Waiting>>,
    permits: Semaphore,
}

/// A put that waits for a bulk write.
struct Waiting {
    record: usize,
    value: usize,
    done: oneshot::Sender<()>,
}

#[derive(Serialize)]
struct Pair<'a> {
    key: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct ByNames<'a> {
    keys: [&'a str; 1],
    r#type: &'static str,
    #[serde(rename = "withMetadata")]
    with_metadata: bool,
}

#[derive(Deserialize)]
struct Answer<T> {
    result: T,
}

#[derive(Deserialize)]
struct Namespace {
    id: String,
}

#[derive(Deserialize)]
struct Found {
    values: HashMap<String, Option<Stored>>,
}

#[derive(Deserialize)]
struct Stored {
    value: String,
}

/// A store in a new namespace, and a raw client of it.
pub async fn open(records: &Arc<Records>) -> Result<Opened> {
    let api = Server::CloudflareKv.address()?;
    let http = http::client()?;
    let namespaces = format!("{api}/accounts/{ACCOUNT}/storage/kv/namespaces");
    let making = http.post(&namespaces).bearer_auth(TOKEN).json(&json!({"title": unused_name()}));
    let made: Answer<Namespace> = serde_json::from_slice(&answer(making).await?)?;
    let id = made.result.id;
    let options =
        Options { api, token: Some(Token::new(TOKEN)?), ..Options::new(ACCOUNT, id.as_str()) };
    let store = Store::new(CloudflareKv::open(options).await?);
    let url = |path: &str| Url::parse(&format!("{namespaces}/{id}{path}"));
    let raw = Raw {
        http,
        records: records.clone(),
        namespace: url("")?,
        bulk: url("/bulk")?,
        bulk_get: url("/bulk/get")?,
        names: records.keys.iter().map(ToString::to_string).collect(),
        waiting: Mutex::default(),
        permits: Semaphore::new(BATCHES_MAX),
    };
    Ok((store, Arc::new(raw)))
}

impl Raw {
    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends puts in one request.
    async fn send(&self, batch: Vec<Waiting>) -> Result<()> {
        let pairs: Vec<Pair<'_>> = batch
            .iter()
            .map(|one| Pair {
                key: &self.names[one.record],
                value: self.records.values[one.value].as_str(),
            })
            .collect();
        answer(self.http.put(self.bulk.clone()).bearer_auth(TOKEN).json(&pairs)).await?;
        for one in batch {
            // Who waits no longer need not hear it.
            let _ = one.done.send(());
        }
        Ok(())
    }
}

impl Client for Raw {
    fn get(&self, record: usize) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(async move {
            let name = self.names[record].as_str();
            let asked = ByNames { keys: [name], r#type: "text", with_metadata: true };
            let request = self.http.post(self.bulk_get.clone()).bearer_auth(TOKEN).json(&asked);
            let mut found: Answer<Found> = serde_json::from_slice(&answer(request).await?)?;
            let stored = found.result.values.remove(name).flatten();
            Ok(stored.map(|stored| stored.value.into()))
        })
    }

    /// Whoever gets a permit sends what waits, for others too: the rule of the adapter.
    fn put(&self, record: usize, value: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let (done, mut answered) = oneshot::channel();
            self.waiting().push(Waiting { record, value, done });
            tokio::task::yield_now().await;
            loop {
                let permit = Box::pin(self.permits.acquire());
                let permit = match select(&mut answered, permit).await {
                    Either::Left((sent, _)) => return Ok(sent?),
                    Either::Right((permit, _)) => permit?,
                };
                let batch = mem::take(&mut *self.waiting());
                if batch.is_empty() {
                    drop(permit);
                    return Ok(answered.await?);
                }
                self.send(batch).await?;
            }
        })
    }
}

impl RawClient for Raw {
    fn remove(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            answer(self.http.delete(self.namespace.clone()).bearer_auth(TOKEN)).await?;
            Ok(())
        })
    }
}
