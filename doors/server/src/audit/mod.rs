//! Who changed what, and when: a log that is only added to.
//!
//! It is kept in the control store in sheets of many acts, below `system:server:audit:{time}:{id}`,
//! and written beside the requests. A request that changes something takes its place in the queue
//! before it begins, and waits if there is none: nothing is left out. A process that is killed takes
//! the last moments with it. Requests that are refused again and again are summed up, and the oldest
//! sheets go when the log becomes too large.

mod bound;
mod log;
mod refusals;
mod scribe;

use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use jiff::Timestamp;
use keyward::{Clock, Code, Store};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio::time::timeout;

pub use log::{AuditLog, AuditQuery};
use refusals::Repeated;
pub(crate) use scribe::Scribe;

use crate::auth::Identity;
use crate::metrics::RouteName;
use crate::problem::{Problem, Result};

/// Under which kind of the server's own keys the log lies.
const AUDIT: &str = "audit";
/// How many acts wait to be written at most.
const QUEUE_MAX: usize = 4_096;
/// How long a request waits for a place in the queue.
const PLACE_TIME_MAX: Duration = Duration::from_secs(5);
/// How much of a path is kept.
const PATH_BYTES_MAX: usize = 1_024;
/// How far apart the acts of one sheet are at most.
const SHEET_TIME_MAX: Duration = Duration::from_secs(1);
/// How long acts are kept when nobody says.
pub(crate) const KEPT_DEFAULT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// How large the log becomes when nobody says.
pub(crate) const BYTES_MAX_DEFAULT: u64 = 256 * 1024 * 1024;

/// How much of the log is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keeping {
    /// How long.
    pub time: Duration,
    /// How many bytes.
    pub bytes_max: u64,
}

/// What a request did, as it is told. It is put into words where it is written down, beside the requests.
#[derive(Debug)]
struct Told {
    /// When it was answered.
    time: Timestamp,
    who: Identity,
    request: Arc<str>,
    method: &'static str,
    route: RouteName,
    /// Copied: the address of a request holds on to all that came with it.
    path: String,
    /// None, if the request was given up while it was worked on.
    status: Option<u16>,
    /// How many more were refused in the same way, if this stands for them.
    repeated: Option<Repeated>,
}

/// What is known of a request before it is done. Nothing of it is copied before there is something
/// to tell.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub request: Arc<str>,
    pub method: &'static str,
    pub route: RouteName,
    pub uri: Uri,
}

/// Where acts are told.
#[derive(Debug)]
pub(crate) struct Audit {
    queue: mpsc::Sender<Told>,
    clock: Arc<dyn Clock>,
    refused: Counter,
}

/// The two ends of a new log: `run` tells its sheets from those of other processes.
pub(crate) fn open(
    store: Store,
    clock: Arc<dyn Clock>,
    keeping: Keeping,
    run: String,
) -> (Audit, Scribe) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let scribe = Scribe::new(receiver, store, clock.clone(), keeping, run);
    (Audit { queue: sender, clock, refused: Counter::default() }, scribe)
}

impl Audit {
    /// The same, counting the requests that are refused for want of a place.
    pub fn counting(self, refused: Counter) -> Self {
        Self { refused, ..self }
    }

    /// Takes a place in the log for a request that begins now.
    pub async fn begin(&self, who: &Identity, asked: Asked) -> Result<Slip> {
        let full = || {
            self.refused.inc();
            Problem::new(Code::Unavailable, "the audit log cannot be written fast enough")
                .hint("Try again in a moment; nothing was done.")
                .retryable()
        };
        let permit = match self.queue.clone().try_reserve_owned() {
            Ok(permit) => permit,
            Err(TrySendError::Full(queue)) => {
                let permit = timeout(PLACE_TIME_MAX, queue.reserve_owned()).await;
                permit.map_err(|_| full())?.map_err(|_| full())?
            }
            Err(TrySendError::Closed(_)) => return Err(full()),
        };
        let (clock, who) = (self.clock.clone(), who.clone());
        Ok(Slip { permit: Some(permit), clock, who, asked, status: None })
    }
}

/// A place in the log. What the request did is told when this is dropped, however that comes; a
/// request that did not ask to change anything is not told of.
#[derive(Debug)]
pub(crate) struct Slip {
    permit: Option<OwnedPermit<Told>>,
    clock: Arc<dyn Clock>,
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
        let (Some(permit), Some(_)) = (self.permit.take(), self.who.act()) else { return };
        permit.send(Told {
            time: self.clock.now(),
            who: self.who.clone(),
            request: self.asked.request.clone(),
            method: self.asked.method,
            route: self.asked.route.clone(),
            path: shown(self.asked.uri.path()),
            status: self.status,
            repeated: None,
        });
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

#[cfg(test)]
impl Told {
    /// An act of nobody.
    fn of_test(time: Timestamp) -> Self {
        let (request, path) = (Arc::from(""), String::new());
        let (who, route) = (Identity::local(), RouteName::Fixed("none"));
        Self { time, who, request, method: "PUT", route, path, status: None, repeated: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Need, Target};
    use keyward::{Json, Scan, Tier};
    use keyward_memory::{Memory, Options};
    use keyward_testkit::TestClock;

    fn log(clock: &TestClock) -> (Audit, Scribe, AuditLog) {
        let store = Store::new(Memory::with(Options::default(), clock.clone()));
        let (audit, scribe) = opened(&store, clock, BYTES_MAX_DEFAULT);
        (audit, scribe, AuditLog::new(store))
    }

    fn opened(store: &Store, clock: &TestClock, bytes_max: u64) -> (Audit, Scribe) {
        let keeping = Keeping { time: KEPT_DEFAULT, bytes_max };
        open(store.clone(), Arc::new(clock.clone()), keeping, "run".to_owned())
    }

    /// Does what an admin may, with an answer.
    async fn act(audit: &Audit, status: u16) {
        let who = Identity::local();
        let slip = audit.begin(&who, asked()).await.unwrap();
        who.require(Need::Admin, &Target::Server).unwrap();
        slip.end(status);
    }

    async fn all(log: &AuditLog) -> Vec<Json> {
        let mut query = AuditQuery { limit: 1_000, ..AuditQuery::default() };
        let mut all = Vec::new();
        loop {
            let (some, next) = log.read(&query).await.unwrap();
            all.extend(some);
            if next.is_none() {
                return all;
            }
            query.after = next;
        }
    }

    /// The bytes of all sheets, and what is counted of them.
    async fn sizes(store: &Store) -> (u64, i64) {
        let scan = |kind| Scan::new(crate::control::range(kind)).limit(1_000);
        let sheets = store.scan(&scan(AUDIT)).await.unwrap();
        let sheets = sheets.rows.iter();
        let bytes = sheets.map(|row| bound::size(&row.key, &row.entry.as_ref().unwrap().value));
        let counted = store.scan(&scan("audit-bytes")).await.unwrap();
        let counted = counted.rows.iter();
        let counted = counted.map(|row| row.entry.as_ref().unwrap().value.as_integer().unwrap());
        (bytes.sum(), counted.sum())
    }

    /// Fills the log hour by hour, each time by a server of its own.
    async fn fill(store: &Store, clock: &TestClock, bytes_max: u64, hours: u64) {
        for _ in 0..hours {
            let (audit, scribe) = opened(store, clock, bytes_max);
            let acts = async {
                for _ in 0..3_000 {
                    act(&audit, 200).await;
                }
            };
            let (done, finish) = tokio::sync::oneshot::channel::<()>();
            let finish = async { drop(finish.await) };
            tokio::join!(scribe.write(finish), async {
                acts.await;
                drop(done);
            });
            clock.advance(Duration::from_secs(60 * 60));
        }
    }

    #[tokio::test]
    async fn the_oldest_sheets_go_when_the_log_is_too_large() {
        const MAX: u64 = 2 * 1024 * 1024;
        let clock = TestClock::new();
        let store = Store::new(Memory::with(Options::default(), clock.clone()));
        let began = clock.now();
        fill(&store, &clock, MAX, 8).await;
        let (bytes, counted) = sizes(&store).await;
        assert!(bytes <= MAX, "{bytes} bytes");
        assert!(bytes > MAX / 2, "{bytes} bytes: more was removed than necessary");
        assert_eq!(u64::try_from(counted), Ok(bytes), "what is counted is what is there");
        let left = all(&AuditLog::new(store.clone())).await;
        let times = |act: &Json| act.as_str()[..40].to_owned();
        assert!(left.iter().map(times).is_sorted(), "the oldest went first");
        assert!(left.len() >= 3_000, "the last hour is whole: {}", left.len());
        assert!(!left[0].as_str().contains(&began.to_string()));
    }

    #[tokio::test]
    async fn the_size_is_bounded_without_commits_of_several_keys() {
        const MAX: u64 = 1024 * 1024;
        let clock = TestClock::new();
        for tier in [Tier::Recoverable, Tier::Advisory] {
            let store = Store::new(Memory::with(Options::tier(tier), clock.clone()));
            if !store.capabilities().add {
                continue;
            }
            fill(&store, &clock, MAX, 4).await;
            let (bytes, counted) = sizes(&store).await;
            assert!(bytes <= MAX, "{bytes} bytes");
            assert!(u64::try_from(counted).unwrap() >= bytes, "{counted} is less than {bytes}");
        }
    }

    #[tokio::test]
    async fn a_log_that_was_never_counted_is_counted_and_cut() {
        const MAX: u64 = 1024 * 1024;
        let clock = TestClock::new();
        let store = Store::new(Memory::with(Options::default(), clock.clone()));
        fill(&store, &clock, u64::MAX, 3).await;
        // As a server of before left it.
        let numbers = store.scan(&Scan::new(crate::control::range("audit-bytes"))).await.unwrap();
        for row in numbers.rows {
            store.delete(row.key).await.unwrap();
        }
        let (before, _) = sizes(&store).await;
        assert!(before > MAX, "{before} bytes");
        let (_audit, scribe) = opened(&store, &clock, MAX);
        scribe.write(std::future::ready(())).await;
        let (bytes, counted) = sizes(&store).await;
        assert!(bytes <= MAX, "{bytes} bytes");
        assert_eq!(u64::try_from(counted), Ok(bytes));
    }

    #[tokio::test]
    async fn refusals_are_summed_up_and_what_was_done_is_not() {
        let (audit, scribe, log) = log(&TestClock::new());
        let acting = async {
            for _ in 0..1_000 {
                act(&audit, 403).await;
                act(&audit, 200).await;
            }
        };
        let (done, finish) = tokio::sync::oneshot::channel::<()>();
        let finish = async { drop(finish.await) };
        tokio::join!(scribe.write(finish), async {
            acting.await;
            drop(done);
        });
        let acts = all(&log).await;
        let with = |text: &str| acts.iter().filter(|act| act.as_str().contains(text)).count();
        assert_eq!((with(r#""status":200"#), with(r#""status":403"#)), (1_000, 2));
        assert_eq!(with(r#""repeated":{"count":999,"#), 1, "{:?}", acts.last());
    }

    fn asked() -> Asked {
        let request = axum::extract::Request::default();
        let (route, uri) = (RouteName::of(&request), Uri::from_static("/v1/keys"));
        Asked { request: "r-1".into(), method: "POST", route, uri }
    }

    async fn acts(log: &AuditLog) -> Vec<Json> {
        log.read(&AuditQuery { limit: 10, ..AuditQuery::default() }).await.unwrap().0
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_refuses_requests_before_anything_is_done() {
        let (audit, _scribe, _) = log(&TestClock::new());
        let who = Identity::local();
        let mut slips = Vec::new();
        for _ in 0..QUEUE_MAX {
            slips.push(audit.begin(&who, asked()).await.unwrap());
        }
        let refused = audit.begin(&who, asked()).await.unwrap_err();
        assert_eq!((refused.code(), refused.status()), (keyward::Code::Unavailable, 503));
        // A request that changed nothing gives its place back.
        drop(slips.pop());
        let slip = audit.begin(&who, asked()).await.unwrap();
        drop(slip);
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_is_in_the_log_without_a_status() {
        let (audit, scribe, log) = log(&TestClock::new());
        let (given_up, done) = (Identity::local(), Identity::local());
        let slip = audit.begin(&given_up, asked()).await.unwrap();
        given_up.require(Need::Admin, &Target::Server).unwrap();
        drop(slip);
        let slip = audit.begin(&done, asked()).await.unwrap();
        done.require(Need::Admin, &Target::Server).unwrap();
        slip.end(201);
        scribe.write(std::future::ready(())).await;
        let acts = acts(&log).await;
        assert_eq!(acts.len(), 2);
        assert!(acts[0].as_str().ends_with(r#""status":null}"#), "{}", acts[0].as_str());
        assert!(acts[1].as_str().ends_with(r#""status":201}"#), "{}", acts[1].as_str());
    }

    #[tokio::test]
    async fn acts_are_kept_for_ninety_days() {
        let clock = TestClock::new();
        let (audit, scribe, log) = log(&clock);
        let who = Identity::local();
        let slip = audit.begin(&who, asked()).await.unwrap();
        who.require(Need::Admin, &Target::Server).unwrap();
        slip.end(200);
        scribe.write(std::future::ready(())).await;
        clock.advance(Duration::from_secs(90 * 24 * 60 * 60 - 1));
        assert_eq!(acts(&log).await.len(), 1);
        clock.advance(Duration::from_secs(1));
        assert_eq!(acts(&log).await.len(), 0);
    }

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
