//! A server, from its start to its stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use keyward::Data;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::{Instant, interval, timeout_at};
use tokio_rustls::rustls::ServerConfig;

use crate::app::App;
use crate::audit::Scribe;
use crate::auth::{StartToken, Tokens};
use crate::config::Config;
use crate::http;
use crate::lifecycle::Lifecycle;
use crate::listener;
use crate::mcp::{Endpoint, McpOptions};
use crate::problem::Problem;
use crate::tls::Certificate;

/// A server that listens, and serves once it is [run](Server::run).
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    app: App,
    lifecycle: Lifecycle,
    scribe: Scribe,
    tls: Option<Arc<Certificate>>,
    tls_reload_interval: Duration,
    acceptor: Option<Arc<ServerConfig>>,
    mcp: McpOptions,
}

/// How much of the time of a stop is kept for writing what has been gathered in memory: a quarter,
/// but no more than this.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(5);
/// How long that may take in any case.
const FLUSH_TIME_MIN: Duration = Duration::from_secs(1);
/// How often the control store is told which keys were used.
const USES_INTERVAL: Duration = Duration::from_secs(30);
/// How often the control store is told what was written, if there is a quota.
const USAGE_INTERVAL: Duration = Duration::from_secs(5);

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Something else listens there, or it is no address of this machine.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// Others could reach the server, and nothing would tell them apart.
    #[error(
        "{0} can be reached from other machines, and there is neither an API key nor an \
         issuer of tokens: anybody could do everything"
    )]
    Unguarded(SocketAddr),
    /// Others could read along, and nobody said that this is well.
    #[error(
        "{0} can be reached from other machines, and neither is a certificate configured nor are \
         connections without TLS allowed: others could read credentials and data on their way"
    )]
    ReadAlong(SocketAddr),
    /// The keys of the issuer of tokens cannot be used.
    #[error("{keys} cannot be used to check tokens: {reason}")]
    IssuerKeys {
        /// Where they are.
        keys: String,
        /// Why.
        reason: String,
    },
    /// A certificate or its key cannot be used.
    #[error("{} cannot be used for TLS: {reason}", file.display())]
    Tls {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// Something else than an origin is configured as one that may call from a browser.
    #[error("{origin:?} cannot be allowed as an origin: {reason}")]
    Origin {
        /// What is configured.
        origin: String,
        /// Why.
        reason: &'static str,
    },
    /// A registry cannot be kept as its settings say.
    #[error("the registry {registry} cannot be kept: {reason}")]
    Registry {
        /// The registry.
        registry: String,
        /// Why.
        reason: String,
    },
    /// A workspace of agreements cannot be kept as its settings say.
    #[error("the workspace {workspace} cannot be kept: {reason}")]
    Agreements {
        /// The workspace.
        workspace: String,
        /// Why.
        reason: String,
    },
    /// The stores, or what is kept in them, cannot be opened.
    #[error("{}", .0.detail())]
    Stores(Box<Problem>),
}

impl Server {
    /// Opens the stores, and begins to listen.
    ///
    /// Without API keys and an issuer of tokens it works for the one local user, on a loopback address
    /// only: everybody on the machine, or with [`Config::start_token`] whoever has that token. On another one it needs at least one key or an issuer, and a certificate unless
    /// connections in plain text are allowed.
    pub async fn bind(config: &Config, data: &Data) -> Result<Self, StartError> {
        let exposed = !config.listen.ip().is_loopback();
        config.refuse_eavesdroppers()?;
        config.refuse_bad_origins()?;
        let tls = config.tls.as_ref().map(Certificate::load).transpose()?;
        let acceptor = tls.as_ref().map(Certificate::config).transpose()?;
        let tokens = match config.issuer.clone() {
            Some(issuer) => {
                let keys = issuer.keys.to_string();
                let tokens = Tokens::open(issuer, config.clock.clone()).await;
                Some(tokens.map_err(|reason| StartError::IssuerKeys { keys, reason })?)
            }
            None => None,
        };
        let guarded = tokens.is_some();
        let lifecycle = Lifecycle::default();
        let unopened = |problem| StartError::Stores(Box::new(problem));
        let opened = App::open(config, data, tokens, lifecycle.clone()).await;
        let (app, scribe) = opened.map_err(unopened)?;
        if let Some(secret) = &config.first_key {
            let adopted = app.auth().adopt_first_key(secret).await;
            adopted.map_err(|error| unopened(error.into()))?;
        }
        if exposed
            && !guarded
            && !app.auth().keys().any().await.map_err(|error| unopened(error.into()))?
        {
            return Err(StartError::Unguarded(config.listen));
        }
        if let Some(certificate) = &tls {
            certificate.announce(&app);
        }
        app.warn_of_idle_origins();
        let unable = |source| StartError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(unable)?;
        let address = listener.local_addr().map_err(unable)?;
        let mcp = config.mcp.clone();
        let tls_reload_interval = config.tls_reload_interval;
        Ok(Self {
            listener,
            address,
            app,
            lifecycle,
            scribe,
            tls,
            tls_reload_interval,
            acceptor,
            mcp,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it is found.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Whether it works for the local user, until there is a key.
    pub fn is_local(&self) -> bool {
        self.app.auth().is_local()
    }

    /// What the first API key is made with over HTTP, once: nothing, if there is a key or a token of an
    /// issuer is needed. It stands for a credential, and is a secret.
    pub fn start_token(&self) -> Option<&str> {
        self.app.auth().start_token().map(StartToken::reveal)
    }

    /// Serves until `stop` comes: then takes no new connections, ends watches, waits for the
    /// requests, the runs of registries and the tasks of workspaces that are under way, and writes what has been gathered in
    /// memory. All of that together takes at most [`Limits::drain_time_max`](crate::Limits), or a
    /// second if that is less.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listener, app, lifecycle, scribe, tls, acceptor, mcp, .. } = self;
        let (finish, finished) = oneshot::channel::<()>();
        let finished = async {
            let _ = finished.await;
        };
        let stop_time_max = app.limits().drain_time_max;
        let drain_time_max = stop_time_max - (stop_time_max / 4).min(FLUSH_TIME_MAX);
        let serving = async {
            let mcp = Endpoint::new(app.clone(), &mcp, tls.is_some());
            let router = http::router(app.clone(), &mcp);
            let acceptor = acceptor.map(Into::into);
            let serving = listener::serve(listener, acceptor, router, app.clone());
            tokio::pin!(serving);
            app.registries().start(&lifecycle);
            app.agreements().start(&lifecycle);
            let closed = tokio::select! {
                () = serving.as_mut() => true,
                () = stop => false,
                () = keep_certificate_fresh(tls.as_deref(), &app, self.tls_reload_interval) => false,
            };
            lifecycle.stop();
            let stopped = Instant::now();
            let connections = async {
                if !closed {
                    serving.await;
                }
            };
            let drained = async { tokio::join!(connections, app.close_background()) };
            if timeout_at(stopped + drain_time_max, drained).await.is_err() {
                let open = app.metrics().connections.get();
                tracing::warn!(open, "stopped before everything under way had ended");
            }
            let left = async {
                mcp.close().await;
                app.stores().settled().await;
            };
            if timeout_at(stopped + drain_time_max, left).await.is_err() {
                tracing::warn!(
                    "stopped before every line was left: leases end what is still there"
                );
            }
            drop(finish);
            stopped
        };
        let upkeep = keep_up(&app, scribe, finished);
        tokio::pin!(upkeep);
        let stopped = tokio::select! {
            stopped = serving => stopped,
            // It ends only after serving has.
            () = upkeep.as_mut() => return,
        };
        let deadline = (stopped + stop_time_max).max(Instant::now() + FLUSH_TIME_MIN);
        if timeout_at(deadline, upkeep).await.is_err() {
            tracing::error!("stopped before everything that was gathered was written");
        }
    }
}

/// Replaces the certificate when its files change. Never ends.
async fn keep_certificate_fresh(certificate: Option<&Certificate>, app: &App, interval: Duration) {
    match certificate {
        Some(certificate) => certificate.keep_fresh(app, interval).await,
        None => std::future::pending().await,
    }
}

/// Writes what is gathered in memory, now and then and once more when what it is gathered from has
/// finished.
pub(crate) async fn keep_up(app: &App, scribe: Scribe, finished: impl Future<Output = ()>) {
    tokio::select! {
        () = scribe.write(finished) => {}
        () = tell_uses(app) => {}
        () = tell_usage(app) => {}
        () = app.auth().keep_fresh() => {}
        () = tell_accesses(app) => {}
        () = app.refusals().keep_logging() => {}
    }
    app.refusals().log();
    close_agents(app).await;
    flush_uses(app).await;
    flush_usage(app).await;
}

/// Writes now and then who accessed agents' entries, and what runs did. Never ends.
async fn tell_accesses(app: &App) {
    match app.agents() {
        Ok((_, agents)) => drop(agents.keep_flushing(std::future::pending()).await),
        Err(_) => std::future::pending().await,
    }
}

async fn close_agents(app: &App) {
    let Ok((_, agents)) = app.agents() else { return };
    if let Err(error) = agents.close().await {
        tracing::error!(%error, "what was gathered about agents' entries is lost in part");
    }
}

/// Tells the control store now and then which keys were used. Never ends.
async fn tell_uses(app: &App) {
    let mut ticks = interval(USES_INTERVAL);
    loop {
        ticks.tick().await;
        flush_uses(app).await;
    }
}

async fn flush_uses(app: &App) {
    if let Err(error) = app.auth().keys().flush().await {
        tracing::warn!(%error, "the control store could not be told which keys were used");
    }
}

/// Tells the control store now and then what was written. Never ends.
async fn tell_usage(app: &App) {
    let mut ticks = interval(USAGE_INTERVAL);
    loop {
        ticks.tick().await;
        flush_usage(app).await;
    }
}

async fn flush_usage(app: &App) {
    let Some(usage) = app.usage() else { return };
    if let Err(error) = usage.flush().await {
        tracing::warn!(%error, "the control store could not be told what was written");
    }
}
