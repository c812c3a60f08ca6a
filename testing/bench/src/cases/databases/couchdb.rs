//! CouchDB. A get is one `GET` of the document. A put without a check is two requests, since CouchDB
//! replaces a document only if the request names its last revision: `_all_docs` tells it, and `PUT`
//! writes.

use std::sync::Arc;

use bytes::Bytes;
use keyward_couchdb::{CouchDb, Options};
use keyward_engine::{BoxFuture, Store};
use reqwest::header::ACCEPT;
use reqwest::{RequestBuilder, Url};
use serde::{Deserialize, Serialize};

use super::http::{self, answer};
use super::loaded::{Client, Opened, RawClient, Records, unused_name};
use crate::Result;
use crate::server::Server;

/// The number of the form of an entry's document.
const FORM: u32 = 1;

struct Raw {
    http: reqwest::Client,
    records: Arc<Records>,
    /// With user and password, which reqwest puts into a header.
    database: Url,
    all_docs: Url,
    ids: Vec<String>,
    documents: Vec<Url>,
}

#[derive(Serialize)]
struct ByIds<'a> {
    keys: [&'a str; 1],
    include_docs: bool,
}

#[derive(Deserialize)]
struct Found {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    value: Option<Revision>,
}

#[derive(Deserialize)]
struct Revision {
    rev: String,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "_rev")]
    rev: Option<&'a str>,
    keyward: u32,
    value: &'a str,
    mark: &'a str,
}

#[derive(Deserialize)]
struct Stored {
    value: String,
}

/// A store in a new database, and a raw client of it.
pub async fn open(records: &Arc<Records>) -> Result<Opened> {
    let address = Server::CouchDb.address()?;
    let server = address.strip_prefix("http://").ok_or("the CouchDB server must speak http:")?;
    let place = format!("{}/{}", server.trim_end_matches('/'), unused_name());
    let options = Options::from_url(format!("couchdb://{place}").parse()?)?;
    let store = Store::new(CouchDb::open(options).await?);
    let url = |path: &str| Url::parse(&format!("http://{place}{path}"));
    let ids = records.keys.iter().map(|key| format!("keyward!{}", key.to_sortable_text()));
    let ids: Vec<String> = ids.collect();
    // No other character of these ids is escaped in a path.
    let documents = ids.iter().map(|id| url(&format!("/{}", id.replace('!', "%21"))));
    let raw = Raw {
        http: http::client()?,
        records: records.clone(),
        database: url("")?,
        all_docs: url("/_all_docs")?,
        documents: documents.collect::<Result<_, _>>()?,
        ids,
    };
    Ok((store, Arc::new(raw)))
}

impl Raw {
    async fn send(&self, request: RequestBuilder) -> Result<Bytes> {
        answer(request.header(ACCEPT, "application/json")).await
    }
}

impl Client for Raw {
    fn get(&self, record: usize) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(async move {
            let body = self.send(self.http.get(self.documents[record].clone())).await?;
            let Stored { value } = serde_json::from_slice(&body)?;
            Ok(Some(value.into()))
        })
    }

    fn put(&self, record: usize, value: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let asked = ByIds { keys: [&self.ids[record]], include_docs: false };
            let body = self.send(self.http.post(self.all_docs.clone()).json(&asked)).await?;
            let found: Found = serde_json::from_slice(&body)?;
            let last = found.rows.first().and_then(|row| row.value.as_ref());
            // Random and as long as the adapter's.
            let mark = format!("{:022x}", fastrand::u128(..) >> 40);
            let document = Document {
                rev: last.map(|last| last.rev.as_str()),
                keyward: FORM,
                value: self.records.values[value].as_str(),
                mark: &mark,
            };
            self.send(self.http.put(self.documents[record].clone()).json(&document)).await?;
            Ok(())
        })
    }
}

impl RawClient for Raw {
    fn remove(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            self.send(self.http.delete(self.database.clone())).await?;
            Ok(())
        })
    }
}
