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

mod agreements;
mod api;
mod app;
mod audit;
mod auth;
mod background;
mod client;
mod config;
mod control;
mod feed;
mod http;
mod idempotency;
mod lifecycle;
mod limits;
mod listener;
mod log_summary;
mod mcp;
mod metrics;
mod problem;
mod readiness;
mod reads;
mod registries;
mod server;
mod shares;
mod stores;
mod tls;
mod traces;
mod waits;
mod work;

pub use audit::{AuditLog, AuditQuery};
pub use auth::{
    ApiKey, BadScope, BadSecret, Identity, Issuer, KeyError, KeySource, Keys, Need, NewKey, Scope,
    Scopes, Secret, Target, Tenant, TokenAlgorithm,
};
pub use config::{Config, LISTEN_DEFAULT, Limits, RegistryConfig, STORE_DEFAULT, WorkspaceConfig};
pub use http::openapi;
pub use limits::{Quota, Rate, Rates};
pub use mcp::{LocalUser, McpOptions, serve_mcp};
pub use problem::Problem;
pub use server::{Server, StartError};
pub use stores::{CONTROL_DEFAULT, control_default, without_schema};
pub use tls::Tls;
pub use traces::{TRACED, Traces};
