//! Forge KVS, over the storage API. An entry is two rows, its value and its sidecar: a get is a
//! `batch/get` of both, a put is a `transaction` that sets both.

use std::sync::Arc;

use bytes::Bytes;
use keyward_engine::{BoxFuture, Store};
use keyward_forge_kvs::{ForgeKvs, Options, Token};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::OnceCell;

use super::http::{self, answer};
use super::loaded::{Client, Opened, RawClient, Records, unused_name};
use crate::Result;
use crate::server::Server;

/// The most rows in a batch.
const BATCH_MAX: usize = 25;

struct Raw {
    http: reqwest::Client,
    token: String,
    batch_get: Url,
    transaction: Url,
    rows: Vec<RowNames>,
    /// The values as JSON to embed.
    values: Vec<Box<RawValue>>,
    /// The fingerprint that sidecars have of each value.
    fingerprints: OnceCell<Vec<String>>,
}

/// The names of an entry's rows.
struct RowNames {
    value: String,
    sidecar: String,
}

#[derive(Serialize)]
struct Asked<'a> {
    key: &'a str,
    options: AskedOptions,
}

#[derive(Serialize)]
struct AskedOptions {
    #[serde(rename = "metadataFields")]
    metadata_fields: [&'static str; 3],
}

#[derive(Deserialize)]
struct Found {
    #[serde(rename = "successfulKeys")]
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    key: String,
    value: Box<RawValue>,
}

#[derive(Serialize)]
struct Transaction<'a> {
    set: (Set<'a, &'a RawValue>, Set<'a, Sidecar<'a>>),
}

#[derive(Serialize)]
struct Set<'a, T> {
    key: &'a str,
    value: T,
}

#[derive(Serialize)]
struct Sidecar<'a> {
    version: &'a str,
    value: &'a str,
}

#[derive(Deserialize)]
struct StoredSidecar {
    value: String,
}

/// A store in a new installation, and a raw client of it.
pub async fn open(records: &Arc<Records>) -> Result<Opened> {
    let api = Server::ForgeKvs.address()?;
    let token = format!("{}.1", unused_name());
    let options = Options::from_url(format!("forge-kvs://bench?api={api}").parse()?)?;
    let store = Store::new(ForgeKvs::open(options.with_tokens(Token::new(&token)?)).await?);
    let values = records.values.iter().map(|json| RawValue::from_string(json.to_string()));
    let names = records.keys.iter().map(ToString::to_string);
    let rows = names.map(|value| RowNames { sidecar: format!("#keyward:sidecar:{value}"), value });
    let raw = Raw {
        http: http::client()?,
        token,
        batch_get: Url::parse(&format!("{api}/v1/batch/get"))?,
        transaction: Url::parse(&format!("{api}/v1/transaction"))?,
        rows: rows.collect(),
        values: values.collect::<Result<_, _>>()?,
        fingerprints: OnceCell::new(),
    };
    Ok((store, Arc::new(raw)))
}

impl Raw {
    async fn send(&self, url: &Url, body: &impl Serialize) -> Result<Bytes> {
        answer(self.http.post(url.clone()).bearer_auth(&self.token).json(body)).await
    }

    async fn read(&self, names: &[&str]) -> Result<Vec<Row>> {
        let options =
            || AskedOptions { metadata_fields: ["CREATED_AT", "UPDATED_AT", "EXPIRE_TIME"] };
        let asked: Vec<Asked<'_>> =
            names.iter().map(|key| Asked { key, options: options() }).collect();
        let found: Found = serde_json::from_slice(&self.send(&self.batch_get, &asked).await?)?;
        Ok(found.rows)
    }

    /// Those of the sidecars that the adapter wrote with the records. So this side computes none.
    async fn read_fingerprints(&self) -> Result<Vec<String>> {
        let mut fingerprints = Vec::with_capacity(self.rows.len());
        for some in self.rows.chunks(BATCH_MAX) {
            let names: Vec<&str> = some.iter().map(|row| row.sidecar.as_str()).collect();
            let found = self.read(&names).await?;
            for name in names {
                let row = found.iter().find(|row| row.key == name).ok_or("a sidecar is missing")?;
                let sidecar: StoredSidecar = serde_json::from_str(row.value.get())?;
                fingerprints.push(sidecar.value);
            }
        }
        Ok(fingerprints)
    }
}

impl Client for Raw {
    fn get(&self, record: usize) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(async move {
            let RowNames { value, sidecar } = &self.rows[record];
            let found = self.read(&[sidecar, value]).await?;
            let row = found.into_iter().find(|row| row.key == *value);
            Ok(row.map(|row| Box::<str>::from(row.value).into_string().into()))
        })
    }

    fn put(&self, record: usize, value: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            // The first put is before anything is measured, when each record has its own value.
            let fingerprints =
                self.fingerprints.get_or_try_init(|| self.read_fingerprints()).await?;
            // As long as the adapter's: a time in milliseconds and a random number.
            let version = format!("{:011x}-{:016x}", fastrand::u64(..1 << 44), fastrand::u64(..));
            let names = &self.rows[record];
            let sidecar = Sidecar { version: &version, value: &fingerprints[value] };
            let set = (
                Set { key: &names.value, value: &*self.values[value] },
                Set { key: &names.sidecar, value: sidecar },
            );
            self.send(&self.transaction, &Transaction { set }).await?;
            Ok(())
        })
    }
}

impl RawClient for Raw {
    /// The test server forgets its installations when it ends.
    fn remove(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}
