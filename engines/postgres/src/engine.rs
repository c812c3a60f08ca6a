use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Commit, Engine, Entry, Error, ErrorKind, Event, Outcome,
    Page, Result, Revision, Scan, Stats, follow,
};
use keyward_key::{Key, KeyRange};
use tokio::time::timeout;
use tokio_postgres::Row;

use crate::client::{Client, Server};
use crate::error::{corrupt, from_postgres, no_connection};
use crate::watch::{Log, Lookout};
use crate::{Options, schema};

const EXISTS: &str = "SELECT EXISTS (SELECT FROM keyward.stores WHERE name = $1)";
const OPEN: &str = "SELECT id, watched FROM keyward.open($1)";
/// The count reads the index of the whole store: exact, and as slow as the store is large.
const STATS: &str = "SELECT r.trimmed, r.latest,
        (SELECT count(*) FROM keyward.entries e WHERE e.store = $1)
    FROM keyward.reached($1) r";
const TIDY: &str = "SELECT keyward.tidy($1, $2::bigint * interval '1 millisecond')";
/// A hundred years: beyond the server's calendar there is nothing to subtract from.
const HISTORY_MS_MAX: u128 = 100 * 365 * 86_400_000;

/// A store in a PostgreSQL database. Clones share it and its connections.
#[derive(Clone)]
pub struct Postgres {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) client: Client,
    /// The store's number in the database.
    pub(crate) store: i32,
    pub(crate) lookout: Lookout,
    capabilities: Capabilities,
    options: Options,
    /// Whether anyone watched the store when we last heard of it.
    watched: AtomicBool,
    tidying: AtomicBool,
}

impl Postgres {
    /// Opens a store on a server, `postgres://user:password@host:port/database`, creating it if it
    /// does not exist, and with the first one the tables that hold them.
    ///
    /// Needs a Tokio runtime, which must go on as long as the store is used.
    pub async fn open(server: &str, options: Options) -> Result<Self> {
        let opened = Self::open_if(server, options, Missing::Create).await?;
        opened.ok_or_else(removed)
    }

    /// Opens a store on a server, unless there is none of this name: then nothing is made.
    pub async fn open_existing(server: &str, options: Options) -> Result<Option<Self>> {
        Self::open_if(server, options, Missing::Leave).await
    }

    async fn open_if(server: &str, options: Options, missing: Missing) -> Result<Option<Self>> {
        let server = Server::new(server, &options)?;
        let prepared = timeout(options.connect_timeout, prepare(&server, &options.store, missing));
        let prepared = prepared.await.map_err(|_| {
            let message = format!("cannot connect: {}", no_connection(options.connect_timeout));
            Error::new(ErrorKind::Unavailable, message)
        })?;
        let Some((store, watched)) = prepared? else {
            return Ok(None);
        };
        let client = Client::new(&server, store, options.clone())?;
        let shared = Shared {
            lookout: Lookout::start(server, client.clone(), store, options.connect_timeout),
            client,
            store,
            capabilities: Options::capabilities(),
            options,
            watched: AtomicBool::new(watched),
            tidying: AtomicBool::new(false),
        };
        Ok(Some(Self { shared: Arc::new(shared) }))
    }
}

/// What to do about a store that does not exist.
#[derive(Clone, Copy, PartialEq)]
enum Missing {
    Create,
    Leave,
}

/// Prepares the database over a connection that is closed again, and gives the store's number and
/// whether anyone watches it.
async fn prepare(server: &Server, store: &str, missing: Missing) -> Result<Option<(i32, bool)>> {
    let connected = server.config.connect(server.tls.clone()).await;
    let (mut client, connection) =
        connected.map_err(|error| from_postgres("cannot connect", error))?;
    let failed = |error| from_postgres("cannot open the store", error);
    let prepared = async {
        client.batch_execute(&server.session).await.map_err(failed)?;
        if missing == Missing::Leave {
            if !schema::exists(&client).await? {
                return Ok(None);
            }
            let found = client.query_one(EXISTS, &[&store]).await.map_err(failed)?;
            if !found.try_get::<_, bool>(0).map_err(corrupt)? {
                return Ok(None);
            }
        }
        schema::prepare(&mut client).await?;
        let row = client.query_one(OPEN, &[&store]).await.map_err(failed)?;
        Ok(Some((row.try_get(0).map_err(corrupt)?, row.try_get(1).map_err(corrupt)?)))
    };
    tokio::select! {
        prepared = prepared => prepared,
        // Carries what is said above; ends only if the connection does.
        ended = connection => Err(match ended {
            Err(error) => failed(error),
            Ok(()) => Error::new(ErrorKind::Unavailable, "the server closed the connection"),
        }),
    }
}

impl Shared {
    async fn stats(&self) -> Result<Stats> {
        let rows = self.client.read("cannot read the store's size", STATS, &[&self.store]).await?;
        let row = rows.first().ok_or_else(removed)?;
        Ok(Stats {
            entries: number(row, 2)?,
            bytes: None,
            revision: Some(Revision(number(row, 1)?)),
            earliest_revision: Some(Revision(number(row, 0)?)),
        })
    }

    async fn commit(self: &Arc<Self>, commit: &Commit) -> Result<Outcome> {
        let known_watched = self.watched.load(Ordering::Relaxed);
        let answer = self.client.commit(self.store, commit, known_watched).await?;
        self.watched.store(answer.watched, Ordering::Relaxed);
        if let Outcome::Applied { revision: Some(revision), versions } = &answer.outcome
            && !versions.is_empty()
        {
            self.lookout.tell();
            if is_tidied_after(*revision) {
                self.tidy();
            }
        }
        Ok(answer.outcome)
    }

    /// Begins to reclaim and to trim, unless we are at it, and goes on until there is no more to do.
    /// Fails quietly: some later commit does it.
    fn tidy(self: &Arc<Self>) {
        if self.tidying.swap(true, Ordering::Relaxed) {
            return;
        }
        let shared = self.clone();
        tokio::spawn(async move {
            let history = shared.options.history.as_millis().min(HISTORY_MS_MAX) as i64;
            loop {
                let more =
                    shared.client.read("cannot tidy", TIDY, &[&shared.store, &history]).await;
                let more = more.is_ok_and(|rows| {
                    rows.first().is_some_and(|row| row.try_get(0).unwrap_or(false))
                });
                if !more {
                    break;
                }
            }
            shared.tidying.store(false, Ordering::Relaxed);
        });
    }
}

/// Whether housekeeping follows a commit: one in 64, whichever revisions a store gets of those that
/// it shares with others, and also if each is made by a process of its own.
fn is_tidied_after(revision: Revision) -> bool {
    // Multiplied by the golden ratio, every regular sequence spreads out evenly.
    revision.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58 == 0
}

pub(crate) fn number(row: &Row, column: usize) -> Result<u64> {
    let number: i64 = row.try_get(column).map_err(corrupt)?;
    u64::try_from(number).map_err(|_| {
        Error::new(ErrorKind::Corrupt, format!("the database gave the number {number}"))
    })
}

pub(crate) fn removed() -> Error {
    Error::new(ErrorKind::Misplaced, "the store was removed from the database; open it again")
}

impl Engine for Postgres {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Entry>>> {
        Box::pin(self.shared.client.get(self.shared.store, key))
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(self.shared.client.get_many(self.shared.store, keys))
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(self.shared.client.scan(self.shared.store, scan))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move { self.shared.commit(&commit).await })
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        follow(Log::new(self.shared.clone()), range, since)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(self.shared.stats())
    }
}
