use std::thread;
use std::time::Duration;

use keyward_engine::{Json, Put, Store, SystemClock};
use keyward_key::Key;
use keyward_locks::{Guard, LockPath, Locks, Mode, Options, Request, Root, Tried, Who};
use keyward_stores::Place;
use tokio::runtime::Builder;

/// A lease that ends soon, for one who dies.
const SHORT: Duration = Duration::from_millis(600);

pub fn locks_on(store: Store) -> Locks {
    let who = Who::process("ada", "here");
    Locks::new(store, SystemClock, Options { who, ..Options::default() }).unwrap()
}

pub async fn locks(place: &Place) -> Locks {
    locks_on(place.store().await)
}

pub fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

pub fn page(locks: &Locks) -> Root {
    locks.root(key("page:7")).unwrap()
}

pub fn path(text: &str) -> LockPath {
    LockPath::parse(text).unwrap()
}

pub fn number(value: i64) -> Put {
    Put::new(Json::from_integer(value))
}

/// Takes a lock, waiting if need be.
pub async fn take(root: &Root, text: &str) -> Guard {
    root.acquire(&[path(text)], Mode::Exclusive, &Request::default()).await.unwrap()
}

/// Takes a lock if nobody is in the way.
pub async fn try_take(root: &Root, text: &str, mode: Mode) -> Option<Guard> {
    match root.try_acquire(&[path(text)], mode, &Request::default()).await.unwrap() {
        Tried::Granted(guard) => Some(guard),
        Tried::Held(_) => None,
    }
}

/// A process that takes a lock with a short lease and dies: nothing is renewed or released any more.
/// Gives the lock's token.
pub fn taken_by_the_dead(place: &Place, text: &str) -> u64 {
    let die = || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let token = runtime.block_on(async {
            let root = page(&locks(place).await);
            let request = Request::default().ttl(SHORT);
            let guard = root.acquire(&[path(text)], Mode::Exclusive, &request).await.unwrap();
            let token = guard.token();
            std::mem::forget(guard);
            token
        });
        drop(runtime);
        token
    };
    tokio::task::block_in_place(|| thread::scope(|scope| scope.spawn(die).join().unwrap()))
}
