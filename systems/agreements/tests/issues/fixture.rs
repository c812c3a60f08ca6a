use std::sync::Arc;

use jiff::Timestamp;
use keyward_agreements::{
    By, Issue, Issues, NewIssue, PageId, PageIssues, Part, Precision, Reference, Severity,
    SourceId, State, What,
};
use keyward_engine::{Clock, Store};
use keyward_key::Key;
use keyward_locks::{Guard, LockPath, Locks, Mode, Options, Request, Root};
use keyward_stores::Place;
use keyward_testkit::TestClock;
use serde_json::Map;

pub fn page_id(text: &str) -> PageId {
    PageId::new(text).unwrap()
}

pub fn source(text: &str) -> SourceId {
    SourceId::new(text).unwrap()
}

pub fn ada() -> By<'static> {
    By::new("ada")
}

pub fn bob() -> By<'static> {
    By::new("bob")
}

/// The locks of the page `p`, and its issues, as one process has them.
#[derive(Clone)]
pub struct Process {
    pub root: Root,
    pub issues: PageIssues,
    pub all: Issues,
}

impl Process {
    pub fn new(store: Store, clock: impl Clock, options: Options) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let locks = Locks::new(store.clone(), clock.clone(), options).unwrap();
        let root = locks.root(Key::parse("p").unwrap()).unwrap();
        let all = Issues::new(store, locks, clock);
        let issues = all.of(&page_id("p")).unwrap();
        Self { root, issues, all }
    }

    pub async fn on(place: &Place) -> Self {
        Self::new(place.store().await, place.clock().clone(), Options::default())
    }

    pub async fn lock(&self, path: &str, mode: Mode) -> Guard {
        let path = LockPath::parse(path).unwrap();
        self.root.acquire(&[path], mode, &Request::default()).await.unwrap()
    }

    /// Waits until so many wait in line for locks of the page.
    pub async fn until_waiting(&self, count: usize) {
        while self.root.list().await.unwrap().waiters.len() < count {
            tokio::task::yield_now().await;
        }
    }

    pub async fn create(&self, title: &str) -> Issue {
        let new = NewIssue::new(title, Severity::Medium);
        self.issues.create(new, &ada()).await.unwrap().issue
    }

    /// An issue that refers to a policy as it was some seconds after the start of time.
    pub async fn create_about(&self, title: &str, source: &str, modified: i64) -> Issue {
        let parts = vec![Part::Text("see".to_owned()), reference(source, modified)];
        let new = NewIssue::new(title, Severity::Low).describe(parts);
        self.issues.create(new, &ada()).await.unwrap().issue
    }
}

pub fn moment(seconds: i64) -> Timestamp {
    TestClock::START + jiff::SignedDuration::from_secs(seconds)
}

pub fn reference(source: &str, modified: i64) -> Part {
    Part::Reference(Reference {
        source: self::source(source),
        title: format!("Policy {source}"),
        excerpt: format!("what {source} says"),
        offset: 3,
        length: 9,
        located: Precision::Exact,
        modified: moment(modified),
        other: Map::new(),
    })
}

/// What happened to an issue, in order.
pub fn told(issue: &Issue) -> Vec<What> {
    issue.history.iter().map(|event| event.change.clone()).collect()
}

pub fn went(from: State, to: State) -> What {
    What::Transition { from, to }
}
