//! Keyward over HTTP.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use keyward_server::{Config, STORE_DEFAULT, Server, without_schema};
//!
//! let data = without_schema(STORE_DEFAULT)?;
//! let server = Server::bind(&Config::default(), &data).await?;
//! println!("listening on http://{}", server.address());
//! server.run(std::future::pending()).await;
//! # Ok(()) }
//! ```
//!
//! What can be asked for are plain functions in `api`, which know callers and data; `http` puts them
//! on the wire. Who is asking comes from a credential alone (`auth`).

mod api;
mod app;
mod auth;
mod catalogue;
mod config;
mod http;
mod idempotency;
mod lifecycle;
mod listener;
mod metrics;
mod problem;
mod server;
mod stores;

pub use auth::{Auth, BadScope, Identity, Need, Scope, Scopes, Target, Tenant};
pub use config::{Config, LISTEN_DEFAULT, Limits, STORE_DEFAULT};
pub use http::openapi;
pub use problem::Problem;
pub use server::{Server, StartError};
pub use stores::without_schema;
