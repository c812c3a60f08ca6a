//! Connections to the server: a pool of them, and what is sent over one.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime,
};
use futures_util::TryStreamExt;
use keyward_engine::{Error, ErrorKind, Result};
use tokio::time::{sleep, timeout};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::error::Error as PostgresError;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{causes, ends_connection, from_pool, from_postgres, lost_to_another, of_commit};
use crate::{Options, tls};

/// The values of a statement.
pub(crate) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// How much longer than the server's own limit an answer is waited for: by then the network has
/// swallowed it.
const GRACE: Duration = Duration::from_secs(5);
/// After how long of silence the other side is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How often a commit is tried that loses to others, and about how long to wait in between.
const ATTEMPTS_MAX: u32 = 8;
const BACKOFF: Duration = Duration::from_millis(5);

/// Where the server is and how it is spoken to: what new connections are made from.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) config: Config,
    pub(crate) tls: MakeRustlsConnect,
    /// What is said first on every connection.
    pub(crate) session: String,
}

impl Server {
    pub(crate) fn new(url: &str, options: &Options) -> Result<Self> {
        // The error names no part of the URL: there may be a password in it.
        let mut config: Config = url.parse().map_err(|error: PostgresError| {
            Error::new(ErrorKind::Invalid, format!("the store's URL: {}", causes(&error)))
        })?;
        config
            .application_name("keyward")
            .connect_timeout(options.connect_timeout)
            .keepalives_idle(KEEPALIVE)
            .tcp_user_timeout(options.statement_timeout + GRACE)
            // Of several hosts, the one that writes.
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        let tls = tls::connector(options, &mut config)?;
        Ok(Self { config, tls, session: session(options) })
    }
}

/// Settings that what we promise rests on, whatever the database, the user or an administrator set:
/// acknowledged is durable, functions see a new snapshot in each statement, names mean what they
/// say. Every statement finds its rows by the primary key, so one plan serves for good; a plan made
/// while a table was small must not scan it when it has grown.
pub fn session(options: &Options) -> String {
    format!(
        "SET statement_timeout = {};
         SET search_path = pg_catalog;
         SET default_transaction_isolation = 'read committed';
         SET plan_cache_mode = force_generic_plan;
         SET enable_seqscan = off;
         SET enable_bitmapscan = off;
         SET jit = off;
         SET client_min_messages = error;
         SELECT set_config('synchronous_commit', 'on', false)
            WHERE current_setting('synchronous_commit') = 'off';",
        options.statement_timeout.as_millis().min(i32::MAX as u128)
    )
}

/// A pool of connections for one store.
#[derive(Clone)]
pub(crate) struct Client {
    pool: Pool,
    options: Options,
    /// The average size of a row in the last page that was scanned.
    pub(crate) row_bytes: Arc<AtomicUsize>,
}

impl Client {
    /// A pool that makes connections when they are needed.
    pub(crate) fn new(server: &Server, store: i32, options: Options) -> Result<Self> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(server.config.clone(), server.tls.clone(), recycling);
        let greeting = format!("{} SELECT keyward.attach({store});", server.session);
        let pool = Pool::builder(manager)
            .runtime(Runtime::Tokio1)
            .max_size(options.pool_max)
            .wait_timeout(Some(options.connect_timeout))
            .create_timeout(Some(options.connect_timeout))
            .post_create(Hook::async_fn(move |client, _| {
                let greeting = greeting.clone();
                Box::pin(async move {
                    client.batch_execute(&greeting).await.map_err(HookError::Backend)
                })
            }))
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Internal, "cannot set up the pool").caused_by(error)
            })?;
        Ok(Self { pool, options, row_bytes: Arc::default() })
    }

    /// The rows that a statement reads.
    pub(crate) async fn read(
        &self,
        doing: &str,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>> {
        self.read_within(doing, statement, values, usize::MAX).await.map(|read| read.rows)
    }

    /// The rows that a statement reads, up to a size. One that met a connection at its end is sent
    /// once more, over another: it changes nothing.
    pub(crate) async fn read_within(
        &self,
        doing: &str,
        statement: &str,
        values: Values<'_>,
        bytes_max: usize,
    ) -> Result<Rows> {
        let mut attempt = 1;
        loop {
            let connection = self.connection(doing).await?;
            let answer = async {
                let statement = connection.prepare_cached(statement).await?;
                let mut answer = pin!(connection.query_raw(&statement, values.to_vec()).await?);
                let mut read = Rows::default();
                while let Some(row) = answer.try_next().await? {
                    read.bytes += row.raw_size_bytes();
                    read.rows.push(row);
                    if read.bytes >= bytes_max {
                        read.cut = true;
                        break;
                    }
                }
                Ok(read)
            };
            match self.answer(answer).await {
                // The rest is still on its way, and nobody wants it.
                Ok(read) if read.cut => {
                    discard(connection);
                    return Ok(read);
                }
                Ok(read) => return Ok(read),
                Err(Failure::Server(error)) if !ends_connection(&error) => {
                    return Err(from_postgres(doing, error));
                }
                Err(failure) => {
                    discard(connection);
                    match failure {
                        Failure::Server(_) if attempt == 1 => attempt += 1,
                        Failure::Server(error) => return Err(from_postgres(doing, error)),
                        Failure::Silent => return Err(self.silent(ErrorKind::Unavailable, doing)),
                    }
                }
            }
        }
    }

    /// The rows that answer a statement which is a transaction of its own. Tried again, a bounded
    /// number of times, as long as it certainly was not applied: before it is sent, and when the
    /// server gave it up for the sake of another.
    ///
    /// What shall be said right after it goes out together with it, and its answer does not matter.
    pub(crate) async fn write(
        &self,
        statement: &str,
        values: Values<'_>,
        after: Option<(&str, Values<'_>)>,
    ) -> Result<Vec<Row>> {
        const DOING: &str = "cannot commit";
        let mut attempt = 0;
        loop {
            attempt += 1;
            let again = attempt < ATTEMPTS_MAX;
            let connection = self.connection(DOING).await?;
            let prepared = self.answer(async {
                let after = match after {
                    Some((statement, values)) => {
                        Some((connection.prepare_cached(statement).await?, values))
                    }
                    None => None,
                };
                Ok((connection.prepare_cached(statement).await?, after))
            });
            let (statement, after) = match prepared.await {
                // Closed while it lay in the pool: nothing can have been sent over it.
                Ok(_) if connection.is_closed() && again => continue,
                Ok(prepared) => prepared,
                Err(Failure::Server(error)) if again && ends_connection(&error) => {
                    discard(connection);
                    continue;
                }
                Err(Failure::Server(error)) => return Err(from_postgres(DOING, error)),
                Err(Failure::Silent) => {
                    discard(connection);
                    return Err(self.silent(ErrorKind::Unavailable, DOING));
                }
            };
            // Both are written before the first answer is waited for.
            let answers = async {
                let after = async {
                    match &after {
                        Some((statement, values)) => {
                            connection.query(statement, values).await.map(drop)
                        }
                        None => Ok(()),
                    }
                };
                tokio::join!(connection.query(&statement, values), after).0
            };
            match self.answer(answers).await {
                Ok(rows) => return Ok(rows),
                Err(Failure::Server(error)) if again && lost_to_another(&error) => {
                    drop(connection);
                    // At another moment than the other, and later each time.
                    sleep(BACKOFF.mul_f64(f64::from(attempt) * (0.5 + fastrand::f64()))).await;
                }
                Err(Failure::Server(error)) => {
                    if ends_connection(&error) {
                        discard(connection);
                    }
                    return Err(of_commit(error));
                }
                Err(Failure::Silent) => {
                    discard(connection);
                    return Err(self.silent(ErrorKind::OutcomeUnknown, "no answer to the commit"));
                }
            }
        }
    }

    async fn connection(&self, doing: &str) -> Result<Object> {
        self.pool.get().await.map_err(|error| from_pool(doing, error, &self.options))
    }

    async fn answer<T>(
        &self,
        answer: impl Future<Output = Result<T, PostgresError>>,
    ) -> Result<T, Failure> {
        match timeout(self.patience(), answer).await {
            Ok(answer) => answer.map_err(Failure::Server),
            Err(_) => Err(Failure::Silent),
        }
    }

    fn silent(&self, kind: ErrorKind, doing: &str) -> Error {
        Error::new(kind, format!("{doing}: the server was silent for {:?}", self.patience()))
    }

    fn patience(&self) -> Duration {
        self.options.statement_timeout + GRACE
    }
}

/// What a statement read.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<Row>,
    pub(crate) bytes: usize,
    /// Whether there may be more than fitted.
    pub(crate) cut: bool,
}

/// Why there is no answer.
enum Failure {
    /// What the server or the connection says.
    Server(PostgresError),
    /// Nothing was said in time.
    Silent,
}

/// Closes a connection rather than give it back.
fn discard(connection: Object) {
    drop(Object::take(connection));
}
