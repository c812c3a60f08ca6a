//! Entries of policies, copied into another store: a namespace of Cloudflare KV, say, that Workers read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{BoxFuture, Error, Json, Put, Result as StoreResult, Scan, Store};
use keyward_key::Key;
use tokio::sync::OnceCell;

use crate::Registry;
use crate::places::Places;

/// How many entries are read at once.
const PAGE: usize = 200;

/// Opens a store by its URL. Registries know no engines: whoever opens one gives it this.
#[derive(Clone)]
pub struct OpenStore(Arc<Open>);

type Open = dyn Fn(String) -> BoxFuture<'static, StoreResult<Store>> + Send + Sync;

impl OpenStore {
    /// By a function from URLs to stores.
    pub fn new(
        open: impl Fn(String) -> BoxFuture<'static, StoreResult<Store>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(open))
    }
}

impl fmt::Debug for OpenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenStore")
    }
}

/// A store that entries are copied to. Opened when it is first needed.
#[derive(Debug, Clone)]
pub(super) struct Namespace {
    url: String,
    open: Option<OpenStore>,
    timeout: Duration,
    opened: Arc<OnceCell<Opened>>,
}

#[derive(Debug)]
struct Opened {
    store: Store,
    /// The keys of the document, without the prefix that the registry itself may have.
    places: Places,
}

impl Namespace {
    pub fn new(url: &str, open: Option<OpenStore>, timeout: Duration) -> Self {
        Self { url: url.to_owned(), open, timeout, opened: Arc::default() }
    }

    /// Puts an entry under its policy's key.
    pub async fn write(&self, name: &str, entry: String) -> Result<(), String> {
        let Opened { store, places } = self.opened().await?;
        let put = Put::new(Json::parse(entry).map_err(|error| error.to_string())?);
        self.bounded(async { store.put(places.policy(name), put).await.map(drop) }).await
    }

    /// Removes an entry; one that is not there is removed already.
    pub async fn remove(&self, name: &str) -> Result<(), String> {
        let Opened { store, places } = self.opened().await?;
        self.bounded(store.delete(places.policy(name))).await
    }

    /// The entries that are there: the policy's name, and the value. Other keys are passed over.
    pub async fn list(
        &self,
        mut see: impl FnMut(String, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        let Opened { store, places } = self.opened().await?;
        let mut scan = Scan::new(places.policies()).limit(PAGE);
        loop {
            let page = self.bounded(store.scan(&scan)).await?;
            for row in page.rows {
                if let (Some(name), Some(entry)) = (places.name_of(&row.key), row.entry) {
                    see(name, entry.value.as_str())?;
                }
            }
            match page.next {
                Some(next) => scan = scan.after(Some(next)),
                None => return Ok(()),
            }
        }
    }

    /// Copies what the registry says of its last run and its last commit, if the store says something else.
    pub async fn note_run(&self, registry: &Registry) -> Result<(), String> {
        let Opened { store, places } = self.opened().await?;
        let from = &registry.inner.places;
        let theirs = [from.last_run.clone(), from.last_commit.clone()];
        let ours: [Key; 2] = [places.last_run.clone(), places.last_commit.clone()];
        let known = registry.store().get_many(&theirs).await.map_err(|error| error.to_string())?;
        let noted = self.bounded(store.get_many(&ours)).await?;
        for ((key, known), noted) in ours.into_iter().zip(known).zip(noted) {
            let Some(known) = known else { continue };
            if noted.as_ref().is_none_or(|noted| noted.value != known.value) {
                // Text without quotes, which some programs write, stays so.
                let metadata = noted.and_then(|noted| noted.metadata);
                let put = Put { metadata, ..Put::new(known.value) };
                self.bounded(async { store.put(key, put).await.map(drop) }).await?;
            }
        }
        Ok(())
    }

    async fn opened(&self) -> Result<&Opened, String> {
        let opening = self.opened.get_or_try_init(|| async {
            let Some(open) = &self.open else {
                return Err("this program opens no stores to export to".to_owned());
            };
            let store = self.bounded((open.0)(self.url.clone())).await?;
            let places = Places::new("", None).map_err(|error| error.to_string())?;
            Ok(Opened { store, places })
        });
        opening.await
    }

    async fn bounded<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
        match tokio::time::timeout(self.timeout, work).await {
            Ok(done) => done.map_err(|error| super::said(&error)),
            Err(_) => Err(format!("the store did not answer in {} ms", self.timeout.as_millis())),
        }
    }
}
