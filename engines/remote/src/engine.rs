use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Commit, Engine, Entry, Error, ErrorKind, Event, Outcome,
    Page, Result, Revision, Scan, Stats, WatchSupport, cannot_watch,
};
use keyward_key::{Key, KeyRange};

use crate::contract::{AllTold, Told};
use crate::error::{Asks, senseless};
use crate::{Address, Connection, Options, watch, wire};

/// The name of the default store of a server that has several.
const STORE_DEFAULT_NAME: &str = "main";

/// A store that a Keyward server serves. Clones share its connections.
///
/// A commit is sent once: if its answer is lost, the error is
/// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown), and it is for the caller to read. Reads, and whatever
/// the server says it has not done, are asked again a few times. A watch whose connection breaks goes on
/// where it was.
#[derive(Clone)]
pub struct Remote {
    connection: Connection,
    /// The path of the store's own routes.
    path: Arc<str>,
    capabilities: Arc<Capabilities>,
}

impl Remote {
    /// Opens a store of a server, which must have it: what it can do is asked for. Without a name,
    /// the only store that the key reaches is taken, else the server's default one, else the one called
    /// `main`; an error if that is none.
    ///
    /// Needs a Tokio runtime, which must go on as long as the store is used.
    pub async fn open(address: &Address, options: &Options) -> Result<Self> {
        let connection = Connection::new(&address.server, options)?;
        let told = match &address.store {
            Some(name) => {
                let body = connection.get(&format!("/v1/stores/{}", segment(name))).await?;
                serde_json::from_slice::<Told>(&body).map_err(senseless)?
            }
            None => default(&connection.get("/v1/stores").await?)?,
        };
        Ok(Self {
            connection,
            path: format!("/v1/stores/{}/raw", segment(&told.name)).into(),
            capabilities: Arc::new(told.capabilities(address.engine)?),
        })
    }

    /// Asks for something that only looks.
    async fn look(&self, what: &str, body: String) -> Result<Bytes> {
        let path = format!("{}/{what}", self.path);
        self.connection.expect(Method::POST, &path, body.into(), Asks::Looks).await
    }
}

/// The only store that there is, else the server's default one, else the one called `main`.
fn default(body: &Bytes) -> Result<Told> {
    let AllTold { mut items } = serde_json::from_slice(body).map_err(senseless)?;
    let found = match items.len() {
        0 => {
            let message = "the server has no store that this API key reaches";
            return Err(Error::new(ErrorKind::Forbidden, message));
        }
        1 => Some(0),
        _ => {
            let default = items.iter().position(|store| store.default);
            default.or_else(|| items.iter().position(|store| store.name == STORE_DEFAULT_NAME))
        }
    };
    found.map(|at| items.swap_remove(at)).ok_or_else(|| {
        let names: Vec<&str> = items.iter().map(|store| store.name.as_str()).collect();
        let message =
            format!("the server has several stores, and none is named: {}", names.join(", "));
        Error::new(ErrorKind::Invalid, message)
    })
}

/// A segment of a path, percent-encoded.
fn segment(text: &str) -> String {
    let mut path = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                path.push(char::from(byte));
            }
            byte => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

impl Engine for Remote {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(async move {
            if keys.is_empty() {
                return Ok(Vec::new());
            }
            let body = self.look("get", wire::keys(keys)).await?;
            wire::entries(&body, keys.len())
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move { wire::page(&self.look("scan", wire::scan(scan)).await?, scan.want) })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            let path = format!("{}/commit", self.path);
            let (body, asks) = (wire::commit(&commit).into(), Asks::Changes);
            drop(commit);
            let answer = self.connection.ask(Method::POST, &path, body, asks).await?;
            if answer.status.is_success() {
                return wire::applied(&answer.body).map_err(|error| {
                    let message = "the commit was applied, but what was said of it makes no sense";
                    Error::new(ErrorKind::OutcomeUnknown, message).caused_by(error)
                });
            }
            match answer.problem() {
                Some(problem) if answer.status == StatusCode::PRECONDITION_FAILED => {
                    Ok(wire::conflicted(&problem))
                }
                _ => Err(self.connection.refused(answer, asks)),
            }
        })
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        match self.capabilities.watch {
            WatchSupport::Resumable | WatchSupport::Live => {
                let path = format!("{}/watch", self.path);
                watch::watch(self.connection.clone(), path, range, since)
            }
            WatchSupport::Unsupported => cannot_watch(self.capabilities.engine),
        }
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(async move {
            wire::stats(&self.connection.get(&format!("{}/stats", self.path)).await?)
        })
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Remote");
        shown.field("connection", &self.connection).field("path", &self.path).finish()
    }
}
