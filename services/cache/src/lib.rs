//! Results of expensive work, computed once for all processes, and purged when their source is gone.
//!
//! [`Cache::get_or_compute`] gives what is cached, if it is fresh, and else has it computed: once,
//! however many callers ask in however many processes. The others wait and get the same result.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! use keyward_cache::{Cache, Fetch, Origin, Options, Source};
//! use keyward_engine::{Json, Store, SystemClock};
//! use keyward_key::Key;
//!
//! let store = Store::new(keyward_memory::Memory::new());
//! let cache = Cache::new(store, SystemClock, Options::default())?;
//! let key = Key::parse("page7:policy:123")?;
//! let extract = async || Ok::<_, String>(Json::parse(r#"{"title":"Leave"}"#).expect("JSON"));
//!
//! let fetch = Fetch::of(Source::version("sha-1"));
//! let first = cache.get_or_compute(&key, &fetch, extract).await?;
//! let again = cache.get_or_compute(&key, &fetch, extract).await?;
//! assert_eq!((first.origin, again.origin), (Origin::Computed, Origin::Stored));
//!
//! // The source has changed: what was made of it is stale.
//! let fetch = Fetch::of(Source::version("sha-2"));
//! assert_eq!(cache.get_or_compute(&key, &fetch, extract).await?.origin, Origin::Computed);
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is cached is an ordinary entry: its value is the result, its metadata say what it was made of.
//! `docs/cache.md` has the guide and the format.
//!
//! Where asking and computing are two requests, [`Cache::claim`] gives a [`Ticket`] to whoever shall
//! compute, and [`Cache::publish`] takes the result: the same locks and the same promises.
//!
//! [`Purge`] removes what belongs to something that is gone.

mod cache;
mod claim;
mod coalesce;
mod compute;
mod dependants;
mod error;
mod failure;
mod fetch;
mod label;
mod metrics;
mod purge;
mod redo;

pub use cache::{Cache, Options};
pub use claim::{Claim, HeldBack, Ticket};
pub use dependants::Dropped;
pub use error::{Error, Result};
pub use fetch::{Fetch, Source};
pub use label::{Cached, Origin, adopted, is_cached};
pub use metrics::Metrics;
pub use purge::{Presence, Purge, PurgeOptions, Purged, Swept};
