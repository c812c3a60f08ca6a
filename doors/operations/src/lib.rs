//! What every door of Keyward offers, without any wire.
//!
//! An [`Operation`](operation::Operation) is declared once: its request, its response, its
//! [facts](facts::Facts) and one function. [`TABLE`] has all of them; HTTP routes, the API description and
//! commands follow from it. `api` holds the functions behind requests that are not declared yet.

pub mod agreements;
#[doc(hidden)]
pub mod api;
pub mod authorize;
pub mod background;
pub mod config;
pub mod context;
pub mod control;
pub mod deleted;
pub mod entries;
pub mod facts;
pub mod feed;
pub mod idempotency;
pub mod identity;
pub mod input;
pub mod lifecycle;
pub mod location;
pub mod metrics;
pub mod operation;
pub mod problem;
pub mod reads;
pub mod records;
pub mod registries;
pub mod services;
pub mod shares;
pub mod stored;
pub mod stores;
mod table;
pub mod values;
pub mod visibility;
pub mod vocabulary;
pub mod waits;
pub mod work;

pub use table::TABLE;
