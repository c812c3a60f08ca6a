//! Locks on paths, with leases, ordered waiters and fencing tokens.
//!
//! A lock is taken on [paths](LockPath) below a [`Root`], which is any key of a store. Two locks
//! conflict when a path of one is a path of the other, lies above it or lies below it; unless both
//! are [shared](Mode::Shared). What a caller gets is a [`Guard`]: it renews its lease in the
//! background, says when the lock was lost, and gives it back when it is dropped. Writes that go
//! through the guard are refused by the store once the lock is somebody else's, however late they
//! come. A lock that outlives the process that took it, or moves on to another one, is held by a
//! [`Ticket`] instead.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! use keyward_engine::{Commit, Json, Put, Store, SystemClock};
//! use keyward_key::Key;
//! use keyward_locks::{Locks, LockPath, Mode, Options, Request, Tried};
//!
//! let store = Store::new(keyward_memory::Memory::new());
//! let locks = Locks::new(store, SystemClock, Options::default())?;
//! let page = locks.root(Key::parse("page:7")?)?;
//!
//! let policy = LockPath::parse("policies:123")?;
//! let guard = page.acquire(&[policy], Mode::Exclusive, &Request::default()).await?;
//! let key = Key::parse("page:7:policy:123")?;
//! guard.commit(Commit::new().put(key, Put::new(Json::parse(r#""text""#)?))).await?;
//!
//! // All policies, while one of them is held.
//! let all = LockPath::parse("policies")?;
//! let tried = page.try_acquire(&[all], Mode::Shared, &Request::default()).await?;
//! assert!(matches!(tried, Tried::Held(holder) if holder.token == guard.token()));
//! guard.release().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Who is alive is never told by comparing a stored time with somebody's clock. On engines with
//! commits of several keys, a lease is an entry that the engine itself lets expire; elsewhere a
//! holder is dead when its beat was seen unchanged for longer than its lease, by the observer's own
//! monotonic clock. `docs/locks.md` has the guide, the format, and what a lock cannot do.
//!
//! Everything here runs inside a tokio runtime with its time enabled, and every future may be
//! dropped: what it had entered is taken back in the background, or ends with its lease.

mod acquire;
mod breaking;
mod catalog;
mod error;
mod fence;
mod fenced;
mod guard;
mod list;
mod locks;
mod look;
mod mark;
mod metrics;
mod path;
mod patience;
mod queue;
mod renewal;
mod request;
mod root;
mod ticket;

pub use breaking::Target;
pub use catalog::{Broken, is_lock_catalog};
pub use error::{Error, Result};
pub use fenced::{Change, Updated, present};
pub use guard::{Guard, Loss};
pub use list::{Holder, Life, RootsPage, Standing, Waiter};
pub use locks::{Locks, Options, Wanted};
pub use metrics::Metrics;
pub use path::{LockPath, Mode};
pub use patience::Tried;
pub use request::{Request, Who};
pub use root::Root;
pub use ticket::{Renewal, Ticket};
