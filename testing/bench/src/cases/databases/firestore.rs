//! Firestore, over its REST API. A get is a `batchGet` of one document, a put is a `commit` of one
//! write.

use std::sync::Arc;

use bytes::Bytes;
use keyward_engine::{BoxFuture, Store};
use keyward_firestore::{Firestore, Options};
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::http::{self, answer};
use super::loaded::{Client, Opened, RawClient, Records, unused_name};
use crate::Result;
use crate::server::Server;

/// The emulator takes this for the project's owner.
const TOKEN: &str = "owner";
const DATABASE: &str = "(default)";
const COLLECTION: &str = "entries";

struct Raw {
    http: reqwest::Client,
    records: Arc<Records>,
    batch_get: Url,
    commit: Url,
    /// What removes all documents of the project.
    all: Url,
    ids: Vec<String>,
    names: Vec<String>,
}

#[derive(Serialize)]
struct ByNames<'a> {
    documents: [&'a str; 1],
}

#[derive(Serialize)]
struct Writes<'a> {
    writes: [Write<'a>; 1],
}

#[derive(Serialize)]
struct Write<'a> {
    update: Update<'a>,
}

#[derive(Serialize)]
struct Update<'a> {
    name: &'a str,
    fields: Fields<'a>,
}

#[derive(Serialize)]
struct Fields<'a> {
    key: Text<&'a str>,
    value: Text<&'a str>,
    commit: Text<&'a str>,
}

#[derive(Serialize, Deserialize)]
struct Text<T> {
    #[serde(rename = "stringValue")]
    text: T,
}

#[derive(Deserialize)]
struct Part {
    found: Option<Document>,
}

#[derive(Deserialize)]
struct Document {
    fields: Stored,
}

#[derive(Deserialize)]
struct Stored {
    value: Text<String>,
}

/// A store in a new project, and a raw client of it.
pub async fn open(records: &Arc<Records>) -> Result<Opened> {
    let address = Server::Firestore.address()?;
    let project = unused_name();
    let place = format!("firestore://{project}/{DATABASE}/{COLLECTION}?emulator={address}");
    let store = Store::new(Firestore::open(Options::from_url(place.parse()?)?).await?);
    let root = format!("projects/{project}/databases/{DATABASE}/documents");
    let url = |start: &str, end: &str| Url::parse(&format!("http://{address}/{start}{root}{end}"));
    let ids = records.keys.iter().map(|key| format!("={}", key.to_sortable_text()));
    let ids: Vec<String> = ids.collect();
    let raw = Raw {
        http: http::client()?,
        records: records.clone(),
        batch_get: url("v1/", ":batchGet")?,
        commit: url("v1/", ":commit")?,
        all: url("emulator/v1/", "")?,
        names: ids.iter().map(|id| format!("{root}/{COLLECTION}/{id}")).collect(),
        ids,
    };
    Ok((store, Arc::new(raw)))
}

impl Raw {
    async fn send(&self, url: &Url, body: &impl Serialize) -> Result<Bytes> {
        answer(self.http.post(url.clone()).bearer_auth(TOKEN).json(body)).await
    }
}

impl Client for Raw {
    fn get(&self, record: usize) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(async move {
            let asked = ByNames { documents: [&self.names[record]] };
            let body = self.send(&self.batch_get, &asked).await?;
            let parts: Vec<Part> = serde_json::from_slice(&body)?;
            let found = parts.into_iter().find_map(|part| part.found);
            Ok(found.map(|document| document.fields.value.text.into()))
        })
    }

    fn put(&self, record: usize, value: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mark = format!("{:032x}", fastrand::u128(..));
            let fields = Fields {
                key: Text { text: &self.ids[record] },
                value: Text { text: self.records.values[value].as_str() },
                commit: Text { text: &mark },
            };
            let update = Update { name: &self.names[record], fields };
            self.send(&self.commit, &Writes { writes: [Write { update }] }).await?;
            Ok(())
        })
    }
}

impl RawClient for Raw {
    fn remove(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            answer(self.http.delete(self.all.clone()).bearer_auth(TOKEN)).await?;
            Ok(())
        })
    }
}
