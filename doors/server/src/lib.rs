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

mod app;
mod audit;
mod auth;
mod client;
mod config;
mod http;
mod limits;
mod listener;
mod log_summary;
mod mcp;
mod metrics;
mod readiness;
mod server;
mod tls;
mod traces;

use keyward_operations::{
    agreements, api, control, feed, idempotency, lifecycle, problem, registries, shares, stores,
    work,
};

pub use audit::{AuditLog, AuditQuery};
pub use auth::{
    ApiKey, BadScope, BadSecret, Identity, Issuer, KeyError, KeySource, Keys, Need, NewKey, Scope,
    Scopes, Secret, Target, Tenant, TokenAlgorithm,
};
pub use config::{Config, LISTEN_DEFAULT, Limits, STORE_DEFAULT};
pub use http::openapi;
pub use keyward_operations::config::{RegistryConfig, WorkspaceConfig};
pub use keyward_operations::problem::Problem;
pub use keyward_operations::stores::{CONTROL_DEFAULT, control_default, without_schema};
pub use limits::{Quota, Rate, Rates};
pub use mcp::{LocalUser, McpOptions, serve_mcp};
pub use server::{Server, StartError};
pub use tls::Tls;
pub use traces::{TRACED, Traces};
