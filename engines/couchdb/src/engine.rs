use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keyward_changes::Changes;
use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Clock, Commit, Consistency, Engine, Entry, Error,
    ErrorKind, Event, Outcome, Page, Result, Revision, Scan, Stats, SystemClock,
};
use keyward_http::{Effect, Method, Request, StatusCode};
use keyward_key::{Key, KeyRange};
use serde::Deserialize;

use crate::Options;
use crate::changes::Feed;
use crate::client::{Client, read};
use crate::expiring::Expiring;

/// How late reads of a cluster with several copies are: its servers tell each other at once, or when they are back.
pub(crate) const LAG: Duration = Duration::from_secs(5);

/// A store in a database of CouchDB. Clones share its connections.
#[derive(Clone)]
pub struct CouchDb(Arc<Shared>);

pub(crate) struct Shared {
    pub client: Client,
    pub clock: Box<dyn Clock>,
    capabilities: Capabilities,
    expiring: Mutex<Expiring>,
    changes: Changes<Feed>,
}

impl fmt::Debug for CouchDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CouchDb").field(&self.0.client).finish()
    }
}

impl Shared {
    pub fn expiring(&self) -> MutexGuard<'_, Expiring> {
        self.expiring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What CouchDB says of a database.
#[derive(Debug, Deserialize)]
pub(crate) struct Database {
    #[serde(default)]
    cluster: Cluster,
    #[serde(default)]
    props: Props,
    #[serde(default)]
    sizes: Sizes,
}

#[derive(Debug, Deserialize)]
struct Cluster {
    /// In how many copies each document is kept.
    n: u32,
}

/// Servers that say nothing of it are no cluster.
impl Default for Cluster {
    fn default() -> Self {
        Self { n: 1 }
    }
}

#[derive(Debug, Default, Deserialize)]
struct Props {
    #[serde(default)]
    partitioned: bool,
}

#[derive(Debug, Default, Deserialize)]
struct Sizes {
    #[serde(default)]
    file: Option<u64>,
}

impl Database {
    /// Whether each document is kept in several copies.
    ///
    /// Then two servers may each take a write of the same revision. One of the writes wins when the servers have told
    /// each other, and the other becomes a hidden conflict, although it was acknowledged.
    pub fn has_copies(&self) -> bool {
        self.cluster.n > 1
    }
}

/// What CouchDB says of a database; `None` if it has none of that name.
pub(crate) async fn database(client: &Client) -> Result<Option<Database>> {
    let response = client.send(Request::get(client.url(&[], ""))).await?;
    match response.status {
        StatusCode::OK => read("the database", &response).map(Some),
        StatusCode::NOT_FOUND => Ok(None),
        _ => Err(client.refused(&response)),
    }
}

/// Creates a database. If another process does so at the same time, that is as good.
pub(crate) async fn create_database(client: &Client) -> Result<()> {
    let request = Request::new(Method::PUT, client.url(&[], ""), Effect::WritesOnce);
    let response = client.send(request).await?;
    match response.status {
        StatusCode::CREATED | StatusCode::ACCEPTED | StatusCode::PRECONDITION_FAILED => Ok(()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let database = client.shown();
            let message = format!(
                "the CouchDB database {database} does not exist, and this user cannot create it"
            );
            let advice = "Create it as an administrator, or check its name and the credentials.";
            Err(Error::new(ErrorKind::Misplaced, message).advise(advice))
        }
        _ => Err(client.refused(&response)),
    }
}

impl CouchDb {
    /// Opens a store, and creates its database if there is none of that name.
    pub async fn open(options: Options) -> Result<Self> {
        Self::open_with(options, SystemClock).await
    }

    /// The same, by another clock.
    pub async fn open_with(options: Options, clock: impl Clock) -> Result<Self> {
        let client = Client::new(&options)?;
        let found = match database(&client).await? {
            Some(found) => found,
            None => {
                create_database(&client).await?;
                let missing = || {
                    let message = format!("the CouchDB database {} was deleted", client.shown());
                    Error::new(ErrorKind::Misplaced, message)
                };
                database(&client).await?.ok_or_else(missing)?
            }
        };
        Self::on(client, &options, &found, Box::new(clock))
    }

    /// Opens a store whose database exists; `None` if there is none of that name.
    pub async fn open_existing(options: Options) -> Result<Option<Self>> {
        let client = Client::new(&options)?;
        let Some(found) = database(&client).await? else { return Ok(None) };
        Self::on(client, &options, &found, Box::new(SystemClock)).map(Some)
    }

    fn on(
        client: Client,
        options: &Options,
        found: &Database,
        clock: Box<dyn Clock>,
    ) -> Result<Self> {
        if found.props.partitioned {
            let message = format!(
                "the CouchDB database {} is partitioned, and a store needs one that is not",
                client.shown()
            );
            return Err(Error::new(ErrorKind::Misplaced, message)
                .advise("Name another database: partitions cannot be turned off."));
        }
        let mut capabilities = options.capabilities();
        if found.has_copies() {
            capabilities.compare = false;
            capabilities.consistency = Consistency::Eventual { lag: LAG };
        }
        let changes = Changes::new(Feed::new(client.clone(), options.http.answer_timeout));
        let expiring = Mutex::default();
        Ok(Self(Arc::new(Shared { client, clock, capabilities, expiring, changes })))
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }

    async fn statistics(&self) -> Result<Stats> {
        let entries = self.count().await?;
        let bytes = database(&self.0.client).await?.and_then(|database| database.sizes.file);
        Ok(Stats { entries, bytes, ..Stats::default() })
    }
}

impl Engine for CouchDb {
    fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    fn counts_by_reading(&self) -> bool {
        true
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Entry>>> {
        Box::pin(self.entry_of(key))
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(self.entries_of(keys))
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(self.page(scan))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async {
            let outcome = self.apply(commit).await?;
            self.reclaim_if_due();
            Ok(outcome)
        })
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        self.0.changes.watch(range, since)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(self.statistics())
    }

    fn verify<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.examine(range))
    }
}
