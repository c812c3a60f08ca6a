//! Who changed what, and when: a log that is only added to.
//!
//! It is kept in the control store, below `system:server:audit:{time}:{id}`, and written in batches
//! beside the requests. A request that changes something takes its place in the queue before it
//! begins, and waits if there is none: nothing is left out. A process that is killed takes the last
//! moments with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use keyward::{
    Clock, Commit, Cursor, ErrorKind, Expiry, ExpirySupport, Json, Key, KeyRange, Prefix, Put,
    Scan, Store, Tier,
};
use serde::Serialize;
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio::time::{sleep, timeout};

use crate::auth::{Identity, Need};
use crate::control::place;
use crate::problem::{Problem, Result};

const AUDIT: &str = "audit";
/// How many acts wait to be written at most.
const QUEUE_MAX: usize = 4_096;
/// How many acts are written at once.
const BATCH_MAX: usize = 256;
/// How long acts are gathered before they are written.
const GATHER_TIME: Duration = Duration::from_millis(50);
/// How long a request waits for a place in the queue.
const PLACE_TIME_MAX: Duration = Duration::from_secs(5);
/// The pause after the log could not be written.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How much of a path is kept.
const PATH_BYTES_MAX: usize = 1_024;
/// The most acts on a page.
const PAGE_MAX: usize = 1_000;
/// How long acts are kept when nobody says.
pub(crate) const KEPT_DEFAULT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// A line of the log. There is no value and no secret in it.
#[derive(Debug, Clone, Serialize)]
struct Line {
    time: Timestamp,
    request: String,
    tenant: String,
    credential: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    method: &'static str,
    route: String,
    path: String,
    act: &'static str,
    target: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keys: Vec<String>,
    /// How many keys there were, also those that are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys_total: Option<usize>,
    /// None, if the request was given up while it was worked on.
    status: Option<u16>,
}

/// What is known of a request before it is done.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub request: String,
    pub method: &'static str,
    pub route: String,
    pub path: String,
}

/// Where acts are told.
#[derive(Debug)]
pub(crate) struct Audit {
    queue: mpsc::Sender<(Key, Line)>,
    clock: Arc<dyn Clock>,
    run: String,
    next: AtomicU64,
}

/// The other end of the queue.
#[derive(Debug)]
pub(crate) struct Scribe {
    queue: mpsc::Receiver<(Key, Line)>,
    store: Store,
    kept: Duration,
}

/// The two ends of a new log: `run` tells its acts from those of other processes.
pub(crate) fn open(
    store: Store,
    clock: Arc<dyn Clock>,
    kept: Duration,
    run: String,
) -> (Audit, Scribe) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let audit = Audit { queue: sender, clock, run, next: AtomicU64::new(0) };
    (audit, Scribe { queue: receiver, store, kept })
}

impl Audit {
    /// Takes a place in the log for a request that begins now.
    pub async fn begin(&self, who: &Identity, asked: Asked) -> Result<Slip> {
        let full = || {
            Problem::new("unavailable", "the audit log cannot be written fast enough")
                .hint("Try again in a moment; nothing was done.")
                .retryable()
        };
        let permit = timeout(PLACE_TIME_MAX, self.queue.clone().reserve_owned()).await;
        let permit = permit.map_err(|_| full())?.map_err(|_| full())?;
        let id = format!("{}-{:016x}", self.run, self.next.fetch_add(1, Ordering::Relaxed));
        let (time, who) = (self.clock.now(), who.clone());
        Ok(Slip { permit: Some(permit), id, time, who, asked, status: None })
    }
}

/// A place in the log. What the request did is told when this is dropped, however that comes; a
/// request that did not ask to change anything is not told of.
#[derive(Debug)]
pub(crate) struct Slip {
    permit: Option<OwnedPermit<(Key, Line)>>,
    id: String,
    time: Timestamp,
    who: Identity,
    asked: Asked,
    status: Option<u16>,
}

impl Slip {
    /// Tells how it ended.
    pub fn end(mut self, status: u16) {
        self.status = Some(status);
    }
}

impl Drop for Slip {
    fn drop(&mut self) {
        let (Some(permit), Some(act)) = (self.permit.take(), self.who.act()) else { return };
        let touched = self.who.touched();
        let Asked { request, method, route, path } = &self.asked;
        let line = Line {
            time: self.time,
            request: request.clone(),
            tenant: self.who.tenant().name().to_owned(),
            credential: self.who.credential().to_owned(),
            agent: self.who.caller().agent_id().map(str::to_owned),
            method,
            route: route.clone(),
            path: shown(path),
            act: if act.need == Need::Admin { "admin" } else { "write" },
            target: act.target.clone(),
            keys: touched.keys.iter().map(ToString::to_string).collect(),
            keys_total: (touched.total > touched.keys.len()).then_some(touched.total),
            status: self.status,
        };
        permit.send((place(AUDIT, &sortable(self.time)).child(&self.id), line));
    }
}

/// A path without what somebody may have put there by mistake, a whole API key.
fn shown(path: &str) -> String {
    let end = path.find("kw_").map_or(path.len(), |at| at + "kw_".len());
    let mut end = end.min(PATH_BYTES_MAX);
    while !path.is_char_boundary(end) {
        end -= 1;
    }
    path[..end].to_owned()
}

/// A time as text that sorts as times do.
fn sortable(time: Timestamp) -> String {
    time.strftime("%Y%m%dT%H%M%S%.6f").to_string()
}

impl Scribe {
    /// Writes what is told, until `finish` comes and everything is written.
    pub async fn write(mut self, finish: impl Future<Output = ()>) {
        tokio::pin!(finish);
        let mut finishing = false;
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            tokio::select! {
                count = self.queue.recv_many(&mut batch, BATCH_MAX) => if count == 0 { return },
                () = &mut finish, if !finishing => {
                    finishing = true;
                    self.queue.close();
                    continue;
                }
            }
            if !finishing && timeout(GATHER_TIME, &mut finish).await.is_ok() {
                finishing = true;
                self.queue.close();
            }
            while batch.len() < BATCH_MAX
                && let Ok(told) = self.queue.try_recv()
            {
                batch.push(told);
            }
            while let Err(error) = self.append(&batch).await {
                tracing::error!(%error, acts = batch.len(), "the audit log could not be written");
                sleep(RETRY_PAUSE).await;
            }
            batch.clear();
        }
    }

    /// Adds to the log; what is there already stays as it is.
    async fn append(&self, batch: &[(Key, Line)]) -> keyward::Result<()> {
        let capabilities = self.store.capabilities();
        let expiry = match capabilities.expiry {
            ExpirySupport::Supported { .. } => Some(Expiry::After(self.kept)),
            ExpirySupport::Unsupported => None,
        };
        let together = match capabilities.tier() {
            Tier::Atomic => self.store.limits().commit_keys_max.clamp(1, BATCH_MAX),
            _ => 1,
        };
        for some in batch.chunks(together) {
            let mut commit = Commit::new();
            for (key, line) in some {
                let json = Json::from_value(line)
                    .map_err(|error| keyward::Error::new(ErrorKind::Invalid, error.to_string()))?;
                commit = commit.put(key.clone(), Put { expiry, ..Put::new(json) });
            }
            // Without checks nothing conflicts.
            let _ = self.store.commit(commit).await?;
        }
        Ok(())
    }
}

/// What is asked of a log: acts from one moment to another.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    /// The first moment.
    pub since: Option<Timestamp>,
    /// The last moment.
    pub until: Option<Timestamp>,
    /// The cursor of the page before.
    pub after: Option<String>,
    /// How many acts.
    pub limit: usize,
}

/// The log of a control store, for reading.
#[derive(Debug, Clone)]
pub struct AuditLog {
    store: Store,
}

impl AuditLog {
    /// The log that is kept in a store.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// A page of acts, oldest first, each a JSON object, and the cursor of the next page.
    pub async fn read(&self, query: &AuditQuery) -> keyward::Result<(Vec<Json>, Option<String>)> {
        let acts = Prefix::from_segments(["system", "server", AUDIT]);
        let (since, until) = (query.since.map(sortable), query.until.map(sortable));
        let after = match &query.after {
            Some(cursor) => {
                let (time, id) = cursor.split_once('~').ok_or_else(|| {
                    keyward::Error::new(
                        ErrorKind::Invalid,
                        "the cursor is not one of the audit log",
                    )
                })?;
                Some(Cursor::after_key(&place(AUDIT, time).child(id)))
            }
            None => None,
        };
        let range = KeyRange::between(&acts, since.as_deref(), until.as_deref());
        let scan = Scan::new(range).after(after).limit(query.limit.clamp(1, PAGE_MAX));
        let page = self.store.scan(&scan).await?;
        let next = page.next.and_then(|cursor| {
            let key = Key::from_stored(cursor.as_bytes().to_vec());
            let mut segments = key.segments().past(3);
            Some(format!("{}~{}", segments.next()?, segments.next()?))
        });
        Ok((page.rows.into_iter().filter_map(|row| Some(row.entry?.value)).collect(), next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_sort_as_text() {
        let times = [0, 1, 999_999, 1_000_000, 1_767_225_600_000_000, 1_767_225_600_100_000];
        let texts = times.map(|micros| sortable(Timestamp::from_microsecond(micros).unwrap()));
        assert!(texts.is_sorted(), "{texts:?}");
        assert!(texts.iter().all(|text| text.len() == texts[0].len()), "{texts:?}");
    }

    #[test]
    fn a_path_does_not_give_a_key_away() {
        assert_eq!(shown("/v1/keys/kw_0123_secret"), "/v1/keys/kw_");
        assert_eq!(shown("/v1/stores/main/entries/user:7"), "/v1/stores/main/entries/user:7");
        assert_eq!(shown(&"ü".repeat(PATH_BYTES_MAX)).len(), PATH_BYTES_MAX);
    }
}
