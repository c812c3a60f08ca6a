//! The log as watchers read it, and how they learn of commits.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use keyward_engine::{Change, ChangeKind, ChangeLog, Error, ErrorKind, LogSlice, Result, Revision};
use keyward_key::Key;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::error::Error as PostgresError;
use tokio_postgres::{AsyncMessage, Connection, Row};

use crate::client::{Client, Server};
use crate::commit::channel;
use crate::engine::{Shared, number, removed};
use crate::error::corrupt;

const CHANGES: &str = "SELECT trimmed, latest, horizon, revision, kinds, keys
    FROM keyward.changes($1, $2, $3)";
const REACHED: &str = "SELECT latest FROM keyward.reached($1)";
/// Not the maximum: a plan that was made while the log was short may read all of it.
const LATEST: &str =
    "SELECT (SELECT revision FROM keyward.log WHERE store = $1 ORDER BY revision DESC LIMIT 1)";
/// Tells those who commit that somebody listens; a row that says so long enough is left alone.
const LEASE: &str = "UPDATE keyward.stores SET watched = clock_timestamp() + interval '60 seconds'
    WHERE id = $1 AND watched < clock_timestamp() + interval '40 seconds'";

/// How often that is renewed while anyone watches.
const RENEW_EVERY: Duration = Duration::from_secs(15);
/// How often the log is looked at besides, for commits whose process ended before it could notify.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often it is looked at while those who commit may not know yet that somebody listens, or
/// while nobody can listen.
const LOOK_OFTEN: Duration = Duration::from_millis(20);
/// How long that is.
const SETTLING: Duration = Duration::from_secs(1);
/// How long to wait for a transaction that must end before what comes after it can be told, and how
/// long if that is known to take longer.
const HELD_UP: Duration = Duration::from_millis(5);
const HELD_UP_MAX: Duration = Duration::from_millis(40);
/// After how long without an answer the connection is given up.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);

/// A watcher's view of the log. Keeps the store open.
pub(crate) struct Log {
    shared: Arc<Shared>,
    told: watch::Receiver<()>,
    held: AtomicU8,
}

/// Why the last read stopped where it did: at the end of the log; at a transaction that may not be
/// of this store; at one that is.
const AT_END: u8 = 0;
const HELD: u8 = 1;
const HELD_EXACTLY: u8 = 2;

impl Log {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.lookout.watchers.send_modify(|watchers| *watchers += 1);
        let told = shared.lookout.told.subscribe();
        Self { shared, told, held: AtomicU8::new(AT_END) }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.lookout.watchers.send_modify(|watchers| *watchers -= 1);
    }
}

impl ChangeLog for Log {
    async fn latest(&self) -> Result<Revision> {
        let rows = self.shared.client.read("cannot watch", REACHED, &[&self.shared.store]).await?;
        rows.first().map_or_else(|| Err(removed()), |row| number(row, 0).map(Revision))
    }

    async fn read(&self, after: Revision) -> Result<LogSlice> {
        // Looking at every lock is dear, and mostly what held us up is over in a moment: so only
        // the second time.
        let exact = self.held.load(Ordering::Relaxed) != AT_END;
        let revision = i64::try_from(after.0).unwrap_or(i64::MAX);
        let Shared { client, store, .. } = &*self.shared;
        let rows = client.read("cannot read the log", CHANGES, &[store, &revision, &exact]).await?;
        let reach = rows.first().ok_or_else(removed)?;
        let (trimmed, latest, horizon) = (number(reach, 0)?, number(reach, 1)?, number(reach, 2)?);
        if after.0 < trimmed || after.0 > latest {
            return Ok(LogSlice::TooOld { earliest: Revision(trimmed) });
        }
        let commits = rows.iter().filter_map(|row| commit(row).transpose());
        let commits: Vec<_> = commits.collect::<Result<_>>()?;
        let held = match (commits.is_empty() && latest >= horizon, exact) {
            (false, _) => AT_END,
            (true, false) => HELD,
            (true, true) => HELD_EXACTLY,
        };
        self.held.store(held, Ordering::Relaxed);
        Ok(LogSlice::Commits(commits))
    }

    async fn wait(&mut self, _: Revision) -> Result<()> {
        let again = match self.held.load(Ordering::Relaxed) {
            AT_END => Duration::MAX,
            held => {
                // However many commits are told of meanwhile, they are beyond what holds us up.
                sleep(HELD_UP).await;
                if held == HELD {
                    return Ok(());
                }
                // What holds us up tells of itself when it is committed; not when rolled back.
                HELD_UP_MAX
            }
        };
        // What was told since the last wait counts: the read in between may have missed it.
        match timeout(again, self.told.changed()).await {
            Ok(Err(_)) => Err(Error::new(ErrorKind::Unavailable, "the store was closed")),
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }
}

/// The commit in a row of the log, if there is one.
fn commit(row: &Row) -> Result<Option<(Revision, Vec<Change>)>> {
    if row.try_get::<_, Option<i64>>(3).map_err(corrupt)?.is_none() {
        return Ok(None);
    }
    let kinds: &str = row.try_get(4).map_err(corrupt)?;
    let keys: Vec<&[u8]> = row.try_get(5).map_err(corrupt)?;
    let change = |(key, kind): (&[u8], char)| {
        let kind = match kind {
            'p' => ChangeKind::Put,
            'd' => ChangeKind::Deleted,
            'e' => ChangeKind::Expired,
            other => {
                let message = format!("the log tells of a change of the kind {other:?}");
                return Err(Error::new(ErrorKind::Corrupt, message));
            }
        };
        Ok(Change { key: Key::from_stored(key.to_vec()), kind })
    };
    let changes = keys.into_iter().zip(kinds.chars()).map(change).collect::<Result<_>>()?;
    Ok(Some((Revision(number(row, 3)?), changes)))
}

/// Looks for commits, of this process and others, while anyone watches. A task, which ends with
/// this.
pub(crate) struct Lookout {
    /// Wakes watchers.
    told: watch::Sender<()>,
    watchers: watch::Sender<usize>,
    task: AbortHandle,
}

impl Lookout {
    pub(crate) fn start(
        server: Server,
        client: Client,
        store: i32,
        connect_timeout: Duration,
    ) -> Self {
        let told = watch::Sender::new(());
        let watchers = watch::Sender::new(0);
        let duty = Duty {
            server,
            client,
            store,
            connect_timeout,
            told: told.clone(),
            watchers: watchers.subscribe(),
            latest: None,
        };
        Self { told, watchers, task: tokio::spawn(duty.run()).abort_handle() }
    }

    /// Tells watchers that there may be a new commit.
    pub(crate) fn tell(&self) {
        self.told.send_replace(());
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Duty {
    server: Server,
    client: Client,
    store: i32,
    connect_timeout: Duration,
    told: watch::Sender<()>,
    watchers: watch::Receiver<usize>,
    /// The revision of the last commit that was seen.
    latest: Option<i64>,
}

impl Duty {
    async fn run(mut self) {
        while self.watchers.wait_for(|&watchers| watchers > 0).await.is_ok() {
            let connect = self.server.config.connect(self.server.tls.clone());
            if let Ok(Ok((client, connection))) = timeout(self.connect_timeout, connect).await {
                let told = self.told.clone();
                tokio::select! {
                    () = hear(connection, told) => {}
                    _ = self.attend(&client) => {}
                }
            }
            // That connection has ended, or there was none: for a while, look over the pool's.
            let until = Instant::now() + SETTLING;
            while Instant::now() < until {
                let looked = self.client.read("cannot watch", LATEST, &[&self.store]).await;
                match looked.ok().as_ref().and_then(|rows| rows.first()) {
                    Some(row) => {
                        self.saw(row);
                        sleep(LOOK_OFTEN).await;
                    }
                    None => sleep(LOOK_EVERY).await,
                }
            }
        }
    }

    /// Listens, and looks, as long as the connection serves.
    async fn attend(&mut self, client: &tokio_postgres::Client) -> Result<(), PostgresError> {
        let listen = format!("{} LISTEN {};", self.server.session, channel(self.store));
        client.batch_execute(&listen).await?;
        let (lease, latest) = (client.prepare(LEASE).await?, client.prepare(LATEST).await?);
        while self.watchers.wait_for(|&watchers| watchers > 0).await.is_ok() {
            let began = Instant::now();
            let mut renewal = began;
            while *self.watchers.borrow() > 0 {
                if Instant::now() >= renewal {
                    client.execute(&lease, &[&self.store]).await?;
                    renewal = Instant::now() + RENEW_EVERY;
                }
                let store = self.store;
                match timeout(LOOK_PATIENCE, client.query_one(&latest, &[&store])).await {
                    Ok(row) => self.saw(&row?),
                    Err(_) => return Ok(()),
                }
                let settling = began.elapsed() < SETTLING;
                sleep(if settling { LOOK_OFTEN } else { LOOK_EVERY }).await;
            }
        }
        Ok(())
    }

    fn saw(&mut self, latest: &Row) {
        let latest = latest.try_get(0).unwrap_or_default();
        if self.latest != latest {
            self.latest = latest;
            self.told.send_replace(());
        }
    }
}

/// Carries what is said over a connection, and wakes watchers when it tells of a commit. Ends when
/// the connection does.
async fn hear<S, T>(mut connection: Connection<S, T>, told: watch::Sender<()>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message {
            told.send_replace(());
        }
    }
}
