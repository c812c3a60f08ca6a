//! The one who writes the log down, beside the requests.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use keyward::{Clock, Commit, Expiry, ExpirySupport, Json, Key, Limits, Put, Store, Tier};
use prometheus_client::metrics::counter::Counter;
use serde::{Serialize, Serializer};
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::bound::{self, Bound};
use super::refusals::{Refusals, Repeated};
use super::{AUDIT, Keeping, QUEUE_MAX, SHEET_TIME_MAX, Told, sortable};
use crate::auth::Need;
use crate::control::place;

/// How long acts are gathered before they are written.
const GATHER_TIME: Duration = Duration::from_millis(50);
/// From how many acts on they are written without waiting for more.
const GATHER_MAX: usize = QUEUE_MAX / 4;
/// How large a sheet becomes at most.
const SHEET_BYTES_MAX: usize = 64 * 1024;
/// How many acts are put into words before others have their turn.
const WRITTEN_AT_ONCE: usize = 128;
/// How often it is looked whether sums of refusals are complete.
const SUMS_INTERVAL: Duration = Duration::from_secs(5);
/// The pause after the log could not be written.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The end of the queue at which acts are written down.
#[derive(Debug)]
pub(crate) struct Scribe {
    queue: mpsc::Receiver<Told>,
    store: Store,
    kept: Duration,
    /// Tells the sheets of this process from those of others.
    run: String,
    sheets: u64,
    clock: Arc<dyn Clock>,
    refusals: Refusals,
    bound: Bound,
    failed: Counter,
}

impl Scribe {
    /// The same, counting the writes that failed.
    pub fn counting(self, failed: Counter) -> Self {
        Self { failed, ..self }
    }

    pub(super) fn new(
        queue: mpsc::Receiver<Told>,
        store: Store,
        clock: Arc<dyn Clock>,
        keeping: Keeping,
        run: String,
    ) -> Self {
        let Keeping { time: kept, bytes_max } = keeping;
        let bound = Bound::new(store.clone(), clock.clone(), kept, bytes_max);
        let refusals = Refusals::default();
        let failed = Counter::default();
        Self { queue, store, kept, run, sheets: 0, clock, refusals, bound, failed }
    }

    /// Writes what is told, until `finish` comes and everything is written.
    pub async fn write(mut self, finish: impl Future<Output = ()>) {
        tokio::pin!(finish);
        self.bound.open().await;
        let mut acts = Vec::new();
        loop {
            let more = tokio::select! {
                gathered = gather(&mut self.queue, &mut acts) => gathered,
                () = sleep(SUMS_INTERVAL), if self.refusals.any() => true,
                () = &mut finish, if !self.queue.is_closed() => {
                    // What comes after this was begun before it.
                    self.queue.close();
                    continue;
                }
            };
            let mut lines: Vec<_> =
                acts.drain(..).filter_map(|act| self.refusals.take(act)).collect();
            let now = self.clock.now();
            lines.extend(match more {
                true => self.refusals.due(now),
                false => self.refusals.all(now),
            });
            let sheets = self.sheets(&mut lines).await;
            while let Err(error) = self.append(&sheets).await {
                self.failed.inc();
                tracing::error!(%error, sheets = sheets.len(), "the audit log could not be written");
                sleep(RETRY_PAUSE).await;
            }
            self.bound.wrote(sheets.iter().map(|(key, sheet)| bound::size(key, sheet)).sum()).await;
            if !more {
                return;
            }
        }
    }

    /// The acts as sheets: in order, none too large, none over too long a time.
    async fn sheets(&mut self, acts: &mut Vec<Told>) -> Vec<(Key, Json)> {
        acts.sort_by_key(|act| act.time);
        let limits = self.store.limits();
        let bytes_max = SHEET_BYTES_MAX.min(limits.value_bytes_max);
        let mut sheets = Vec::new();
        let mut sheet = Sheet::default();
        for (number, act) in acts.drain(..).enumerate() {
            // Requests wait for the same threads.
            if number % WRITTEN_AT_ONCE == WRITTEN_AT_ONCE - 1 {
                yield_now().await;
            }
            let text = written(&act, bytes_max);
            if !sheet.takes(act.time, text.len(), bytes_max) {
                sheets.push(std::mem::take(&mut sheet));
            }
            sheet.add(act.time, &text);
        }
        sheets.push(sheet);
        sheets.into_iter().filter_map(|sheet| self.named(sheet)).collect()
    }

    /// A sheet with its key: the time of its last act, so that whoever looks from some moment on
    /// finds all that has acts from then on.
    fn named(&mut self, sheet: Sheet) -> Option<(Key, Json)> {
        let Sheet { times: Some((_, last)), text } = sheet else { return None };
        self.sheets += 1;
        let key = place(AUDIT, &sortable(last)).child(&format!("{}-{:x}", self.run, self.sheets));
        // It is made of lines that are JSON, without white space between them.
        Some((key, Json::from_stored(text + "]")))
    }

    /// Adds to the log. Done again after a failure, it writes the same keys.
    async fn append(&self, sheets: &[(Key, Json)]) -> keyward::Result<()> {
        let capabilities = self.store.capabilities();
        let expiry = match capabilities.expiry {
            ExpirySupport::Supported { .. } => Some(Expiry::After(self.kept)),
            ExpirySupport::Unsupported => None,
        };
        let together = match capabilities.tier() {
            Tier::Atomic => sheets_per_commit(self.store.limits()),
            _ => 1,
        };
        for some in sheets.chunks(together) {
            let mut commit = some.iter().fold(Commit::new(), |commit, (key, sheet)| {
                commit.put(key.clone(), Put { expiry, ..Put::new(sheet.clone()) })
            });
            let numbers = if self.bound.counts() { bound::numbers(some) } else { Vec::new() };
            for (number, bytes) in numbers {
                commit = match capabilities.tier() {
                    Tier::Atomic => commit.add(number, bytes),
                    // First, so that what is there is counted at least.
                    _ => {
                        let _ = self.store.commit(Commit::new().add(number, bytes)).await?;
                        commit
                    }
                };
            }
            // Without checks nothing conflicts.
            let _ = self.store.commit(commit).await?;
        }
        Ok(())
    }
}

/// Takes what is told until it is worth writing down. Nothing is lost if this is given up; `false`
/// if nothing is left and nothing comes any more.
async fn gather(queue: &mut mpsc::Receiver<Told>, acts: &mut Vec<Told>) -> bool {
    if acts.is_empty() && queue.recv_many(acts, GATHER_MAX).await == 0 {
        return false;
    }
    let more = async {
        while acts.len() < GATHER_MAX {
            if queue.recv_many(acts, GATHER_MAX).await == 0 {
                return;
            }
        }
    };
    let _ = timeout(GATHER_TIME, more).await;
    true
}

fn sheets_per_commit(limits: &Limits) -> usize {
    let by_size = limits.commit_bytes_max / (2 * SHEET_BYTES_MAX);
    // Each sheet may be of an hour of its own, with its number.
    by_size.min(limits.commit_keys_max / 2).max(1)
}

/// A line of the log. There is no value and no secret in it.
#[derive(Debug, Serialize)]
struct Line<'a> {
    #[serde(serialize_with = "keyward::moment::serialize")]
    time: Timestamp,
    request: &'a str,
    tenant: &'a str,
    credential: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    method: &'static str,
    route: &'a str,
    path: &'a str,
    act: &'static str,
    target: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "as_text")]
    keys: &'a [Key],
    /// How many keys there were, also those that are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys_total: Option<usize>,
    /// More refusals of the same kind, of which this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<&'a Repeated>,
    status: Option<u16>,
}

fn as_text<S: Serializer>(keys: &[Key], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(keys.iter().map(ToString::to_string))
}

/// An act as JSON; without its keys, if it would not fit into a sheet otherwise.
fn written(told: &Told, bytes_max: usize) -> String {
    let touched = told.who.touched();
    let act = told.who.act();
    let mut line = Line {
        time: told.time,
        request: &told.request,
        tenant: told.who.tenant().name(),
        credential: told.who.credential(),
        agent: told.who.caller().agent_id(),
        method: told.method,
        route: told.route.as_str(),
        path: &told.path,
        act: if act.is_some_and(|act| act.need == Need::Admin) { "admin" } else { "write" },
        target: act.map_or("", |act| &act.target),
        keys: &touched.keys,
        keys_total: (touched.total > touched.keys.len()).then_some(touched.total),
        repeated: told.repeated.as_ref(),
        status: told.status,
    };
    // A line has nothing that JSON has not.
    let text = |line: &Line<'_>| serde_json::to_string(line).unwrap_or_else(|_| "null".to_owned());
    let whole = text(&line);
    if whole.len() + "[]".len() <= bytes_max {
        return whole;
    }
    (line.keys, line.keys_total) = (&[], Some(touched.total));
    text(&line)
}

/// Acts that are written as one entry.
#[derive(Debug, Default)]
struct Sheet {
    /// When the first and the last of them were.
    times: Option<(Timestamp, Timestamp)>,
    /// A JSON array without its end.
    text: String,
}

impl Sheet {
    /// Whether an act that is not before the others fits in.
    fn takes(&self, time: Timestamp, bytes: usize, bytes_max: usize) -> bool {
        self.times.is_none_or(|(first, _)| {
            time.duration_since(first).unsigned_abs() <= SHEET_TIME_MAX
                && self.text.len() + ",]".len() + bytes <= bytes_max
        })
    }

    fn add(&mut self, time: Timestamp, text: &str) {
        self.text.push(if self.times.is_none() { '[' } else { ',' });
        self.text.push_str(text);
        self.times = Some((self.times.map_or(time, |(first, _)| first), time));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn at(seconds: f64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_sheet_is_bounded_in_time_and_size() {
        let mut sheet = Sheet::default();
        assert!(sheet.takes(at(5.0), 1_000, 10), "one act is always taken");
        sheet.add(at(5.0), "1");
        assert!(sheet.takes(at(6.0), 1, 5));
        assert!(!sheet.takes(at(6.1), 1, 5), "too late");
        assert!(!sheet.takes(at(5.0), 2, 5), "too large");
        sheet.add(at(5.5), "2");
        assert_eq!((sheet.text.as_str(), sheet.times), ("[1,2", Some((at(5.0), at(5.5)))));
    }

    #[tokio::test]
    async fn what_was_gathered_is_kept_when_gathering_is_given_up() {
        let (sender, mut queue) = mpsc::channel(8);
        let mut acts = Vec::new();
        sender.try_send(Told::of_test(at(1.0))).unwrap();
        let given_up = gather(&mut queue, &mut acts).now_or_never();
        assert!(given_up.is_none() && acts.len() == 1);
        sender.try_send(Told::of_test(at(2.0))).unwrap();
        drop(sender);
        assert!(gather(&mut queue, &mut acts).await);
        assert_eq!(acts.len(), 2);
        acts.clear();
        assert!(!gather(&mut queue, &mut acts).await);
    }
}
