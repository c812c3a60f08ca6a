use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize};
use std::sync::{Arc, Weak};
use std::time::Duration;

use keyward_engine::{
    BoxFuture, Capabilities, Clock, Commit, Engine, Entry, Error, ErrorKind, Outcome, Page, Result,
    Scan, Stats, SystemClock,
};
use keyward_http::Effect;
use keyward_key::Key;
use serde::Deserialize;
use serde_json::json;

use crate::Options;
use crate::client::Client;
use crate::emulator::Ended;
use crate::error::corrupt;
use crate::read::{PAGE_ROWS_FIRST, parts};

/// The document that says that a collection holds a store.
const STORE: &str = "keyward";
/// The layout of documents that this engine reads and writes.
const FORMAT: u32 = 1;

/// A store in a Firestore collection. Clones share it and its connections.
#[derive(Clone)]
pub struct Firestore {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub client: Client,
    pub clock: Arc<dyn Clock>,
    pub retry_budget: Duration,
    /// How many rows the next page of entries may have.
    pub page_rows: AtomicUsize,
    /// The earliest end that is known of, in milliseconds.
    pub next_end: AtomicI64,
    pub tidying: AtomicBool,
    /// If the database is an emulator.
    pub emulator: Option<Ended>,
    /// Itself, for what goes on beside a commit.
    pub this: Weak<Self>,
    capabilities: Capabilities,
}

impl Firestore {
    /// Opens a store, creating it if it does not exist: that writes one document. The database must exist.
    ///
    /// Needs a Tokio runtime, which must go on as long as the store is used.
    pub async fn open(options: Options) -> Result<Self> {
        Self::open_with(options, SystemClock).await
    }

    /// Opens a store, unless there is none in the collection: then nothing is made.
    pub async fn open_existing(options: Options) -> Result<Option<Self>> {
        let store = Self::new(options, SystemClock).await?;
        Ok(store.exists().await?.then_some(store))
    }

    /// The same as [`Firestore::open`], with a clock of the caller's, by which entries end.
    pub async fn open_with(options: Options, clock: impl Clock) -> Result<Self> {
        let store = Self::new(options, clock).await?;
        if !store.exists().await? {
            store.create().await?;
        }
        Ok(store)
    }

    async fn new(options: Options, clock: impl Clock) -> Result<Self> {
        let client = Client::open(&options).await?;
        let shared = Arc::new_cyclic(|this| Shared {
            client,
            clock: Arc::new(clock),
            retry_budget: options.http.retry_budget,
            page_rows: AtomicUsize::new(PAGE_ROWS_FIRST),
            next_end: AtomicI64::new(i64::MAX),
            tidying: AtomicBool::new(false),
            emulator: options.emulator.is_some().then(Ended::default),
            this: this.clone(),
            capabilities: options.capabilities(),
        });
        Ok(Self { shared })
    }

    /// Whether the collection holds a store, and one that this engine understands.
    async fn exists(&self) -> Result<bool> {
        let client = &self.shared.client;
        let name = client.collection.name(STORE);
        let body = client.read("batchGet", &json!({ "documents": [name] })).await?;
        let Some(document) = parts(&body)?.into_iter().find_map(|part| part.found) else {
            return Ok(false);
        };
        let fields = document.fields.map_or("{}", |fields| fields.get());
        let Marker { format } =
            serde_json::from_str(fields).map_err(|error| corrupt(STORE, error))?;
        if format.number != FORMAT.to_string() {
            let message = format!(
                "the store in the collection {:?} has the format {}; this version of Keyward knows format {FORMAT}",
                client.collection.id(),
                format.number
            );
            return Err(
                Error::new(ErrorKind::Misplaced, message).advise("Use a newer version of Keyward.")
            );
        }
        Ok(true)
    }

    async fn create(&self) -> Result<()> {
        let client = &self.shared.client;
        let name = client.collection.name(STORE);
        let fields = json!({ "format": { "integerValue": FORMAT.to_string() } });
        let write = json!({
            "update": { "name": name, "fields": fields },
            "currentDocument": { "exists": false },
        });
        let answer =
            client.call("commit", &json!({ "writes": [write] }), Effect::WritesOnce).await?;
        match answer.result {
            Ok(_) => Ok(()),
            // Somebody else was faster; it is there for either.
            Err(refusal) if refusal.status == "ALREADY_EXISTS" => self.exists().await.map(drop),
            Err(refusal) => Err(refusal.into_error("make a store in")),
        }
    }
}

#[derive(Deserialize)]
struct Marker {
    format: Format,
}

#[derive(Deserialize)]
struct Format {
    #[serde(rename = "integerValue")]
    number: String,
}

impl Engine for Firestore {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(self.shared.get_many(keys))
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(self.shared.scan(scan))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move { self.shared.commit(&commit).await })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(async {
            let entries = self.shared.count(None).await?;
            Ok(Stats { entries, ..Stats::default() })
        })
    }

    fn expired(&self) -> BoxFuture<'_, Result<Option<u64>>> {
        Box::pin(async { self.shared.count(Some(self.shared.clock.now())).await.map(Some) })
    }
}

impl fmt::Debug for Firestore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Firestore").field("client", &self.shared.client).finish_non_exhaustive()
    }
}
