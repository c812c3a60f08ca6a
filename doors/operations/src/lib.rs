//! What every door of Keyward offers, without any wire.

pub mod agreements;
#[doc(hidden)]
pub mod api;
pub mod background;
pub mod catalogue;
pub mod config;
pub mod control;
pub mod feed;
pub mod idempotency;
pub mod identity;
pub mod lifecycle;
pub mod metrics;
pub mod problem;
pub mod reads;
pub mod registries;
pub mod services;
pub mod shares;
pub mod stores;
pub mod waits;
pub mod work;
