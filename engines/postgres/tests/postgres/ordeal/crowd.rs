//! Those who use the store while something goes wrong: writers, readers, watchers.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures_util::StreamExt;
use keyward_engine::{Error, ErrorKind, Event, Revision, Store};
use keyward_key::KeyRange;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::ledger::{
    Deed, Fate, Ledger, Told, account, fate_of_error, fate_of_outcome, mark, register, side, word,
};

/// How long anything may take at most once nothing is wrong any more.
pub const SOON: Duration = Duration::from_secs(60);
/// How long to wait after an error: nobody should try as fast as he can.
const PAUSE: Duration = Duration::from_millis(10);
/// With how many commits in a row a writer has recovered.
const RECOVERED: usize = 3;

const SLOTS: u32 = 4;
const REGISTERS: u32 = 2;
const NUMBERS: u32 = 2;
const ACCOUNTS: u32 = 4;
const BOARDS: u32 = 2;

/// What happens in a round, as far as all can see it.
#[derive(Default)]
pub struct Round {
    number: u32,
    /// How many bytes commits carry to fill the store with.
    padding: usize,
    /// Whether the disk may be full.
    may_be_full: bool,
    /// Whether nothing is wrong any more.
    lifted: AtomicBool,
    pub made: AtomicUsize,
    pub conflicted: AtomicUsize,
    pub not_done: AtomicUsize,
    pub unknown: AtomicUsize,
    /// Of those that were not done: for lack of connections, and of space.
    pub starved: AtomicUsize,
    pub full: AtomicUsize,
}

impl Round {
    pub fn new(number: u32, padding: usize, may_be_full: bool) -> Self {
        Self { number, padding, may_be_full, ..Self::default() }
    }

    pub fn lift(&self) {
        self.lifted.store(true, Ordering::SeqCst);
    }

    fn is_lifted(&self) -> bool {
        self.lifted.load(Ordering::SeqCst)
    }

    /// How many commits did not end well.
    pub fn failed(&self) -> usize {
        self.not_done.load(Ordering::SeqCst) + self.unknown.load(Ordering::SeqCst)
    }

    fn count(&self, fate: Fate) {
        let counter = match fate {
            Fate::Made(_) => &self.made,
            Fate::Conflicted => &self.conflicted,
            Fate::NotDone => &self.not_done,
            Fate::Unknown => &self.unknown,
        };
        counter.fetch_add(1, Ordering::SeqCst);
    }

    /// Looks at an error: whether it is one that a fault of the server or the network explains.
    fn explain(&self, error: &Error) {
        match error.kind() {
            ErrorKind::OutcomeUnknown => {}
            ErrorKind::Unavailable if error.message().contains("pool_max") => {
                self.starved.fetch_add(1, Ordering::SeqCst);
            }
            ErrorKind::Unavailable => {}
            ErrorKind::Full if self.may_be_full => {
                self.full.fetch_add(1, Ordering::SeqCst);
            }
            kind => panic!("{kind:?} is no word for this: {error}"),
        }
    }
}

/// One who writes, over one engine, until the round is over and the engine works again.
pub struct Writer {
    pub number: usize,
    pub store: Store,
    pub round: Arc<Round>,
    pub ledger: Arc<Mutex<Ledger>>,
    pub rng: Rng,
}

impl Writer {
    pub async fn write(mut self) {
        let mut recovered = 0;
        for n in 0.. {
            let was_lifted = self.round.is_lifted();
            let name = format!("{}-{}-{n}", self.round.number, self.number);
            match self.commit(&name).await {
                Some(Fate::Made(_)) => recovered += usize::from(was_lifted),
                Some(Fate::Conflicted) => {}
                Some(Fate::NotDone | Fate::Unknown) | None => {
                    recovered = 0;
                    sleep(PAUSE).await;
                }
            }
            if recovered == RECOVERED {
                break;
            }
        }
    }

    /// Makes one commit. None is made if what it needs cannot be read.
    async fn commit(&mut self, name: &str) -> Option<Fate> {
        let deed = self.choose().await?;
        let padding: String = (0..self.round.padding).map(|_| self.rng.alphanumeric()).collect();
        let fate = match self.store.commit(deed.commit(name, &padding)).await {
            Ok(outcome) => fate_of_outcome(&outcome),
            Err(error) => {
                self.round.explain(&error);
                fate_of_error(&error)
            }
        };
        self.round.count(fate);
        self.ledger.lock().unwrap().enter(name.to_owned(), deed, fate);
        if let Fate::Made(version) = fate
            && self.rng.u8(0..8) == 0
        {
            // What was acknowledged is there for every later read.
            match self.store.get(&mark(name)).await {
                Ok(found) => {
                    let found = found.and_then(|entry| entry.version.as_number());
                    assert_eq!(found, Some(version), "{name} was acknowledged");
                }
                Err(error) => self.round.explain(&error),
            }
        }
        Some(fate)
    }

    async fn choose(&mut self) -> Option<Deed> {
        let rng = &mut self.rng;
        Some(match rng.u8(0..7) {
            0 => Deed::Note,
            // Few slots in a round, so that many want the same one.
            1 => Deed::Claim { slot: self.round.number * SLOTS + rng.u32(0..SLOTS) },
            2 => {
                let number = rng.u32(0..REGISTERS);
                let before = match self.store.get(&register(number)).await {
                    Ok(found) => found.map(|entry| (word(&entry.value), entry.version)),
                    Err(error) => {
                        self.round.explain(&error);
                        return None;
                    }
                };
                Deed::Swap { register: number, before }
            }
            3 => Deed::Add { number: rng.u32(0..NUMBERS), amount: rng.i64(1..1_000) },
            4 => {
                let from = rng.u32(0..ACCOUNTS);
                let to = (from + rng.u32(1..ACCOUNTS)) % ACCOUNTS;
                Deed::Move { from, to, amount: rng.i64(1..1_000) }
            }
            5 => Deed::Turn { side: rng.u32(0..2) },
            // A few new boards in each round, so that some meet an empty one together.
            _ => Deed::Fill { board: self.round.number * BOARDS + rng.u32(0..BOARDS) },
        })
    }
}

/// Reads all the while what several keys hold together, which never shows half a commit.
pub async fn read(store: Store, round: Arc<Round>) {
    let accounts: Vec<_> = (0..ACCOUNTS).map(account).collect();
    let sides: Vec<_> = (0..2).map(side).collect();
    let mut turned = false;
    while !round.is_lifted() {
        match store.get_many(&accounts).await {
            Ok(found) => {
                let held = found.iter().flatten().map(|entry| entry.value.as_integer().unwrap());
                assert_eq!(held.sum::<i64>(), 0, "half a move was seen");
            }
            Err(error) => round.explain(&error),
        }
        match store.get_many(&sides).await {
            Ok(found) => {
                let count = found.iter().flatten().count();
                assert!(count == 1 || (count == 0 && !turned), "half a turn was seen: {count}");
                turned = count == 1;
            }
            Err(error) => round.explain(&error),
        }
        sleep(PAUSE).await;
    }
}

/// One who watches from the beginning to the end, and resumes where a watch was broken off.
pub struct Watcher {
    told: Arc<Mutex<Told>>,
    resumed: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Watcher {
    /// Begins to watch; everything that is committed after this will be told.
    pub async fn start(store: Store) -> Self {
        let since = store.stats().await.unwrap().revision.unwrap();
        let told = Arc::new(Mutex::default());
        let resumed = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(watch(store, since, told.clone(), resumed.clone()));
        Self { told, resumed, task }
    }

    /// How often a watch was broken off.
    pub fn resumed(&self) -> usize {
        self.resumed.load(Ordering::SeqCst)
    }

    /// Everything up to a revision, once it was told.
    pub async fn told_up_to(&self, revision: u64) -> Told {
        let reached = async {
            loop {
                assert!(!self.task.is_finished(), "the watcher has failed");
                {
                    let told = self.told.lock().unwrap();
                    if told.last().is_some_and(|(last, _)| *last >= revision) {
                        break told.clone();
                    }
                }
                sleep(PAUSE).await;
            }
        };
        timeout(SOON, reached).await.expect("the last commit is told in time")
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(
    store: Store,
    mut since: Revision,
    told: Arc<Mutex<Told>>,
    resumed: Arc<AtomicUsize>,
) {
    loop {
        let mut events = store.watch(KeyRange::all(), Some(since));
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Reached(revision)) => since = revision,
                Ok(Event::Changed { revision, changes }) => {
                    let keys = changes.iter().map(|change| change.key.to_string());
                    told.lock().unwrap().push((revision.0, keys.collect::<BTreeSet<_>>()));
                    since = revision;
                }
                Ok(Event::TooOld { earliest }) => panic!("{since} is kept, not {earliest}"),
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                Err(error) => panic!("a watch ended with {:?}: {error}", error.kind()),
            }
        }
        resumed.fetch_add(1, Ordering::SeqCst);
        sleep(PAUSE).await;
    }
}
