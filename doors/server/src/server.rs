//! A server, from its start to its stop.

use std::net::SocketAddr;

use keyward::Data;
use tokio::net::TcpListener;

use crate::app::App;
use crate::auth::Auth;
use crate::config::Config;
use crate::http;
use crate::lifecycle::Lifecycle;
use crate::listener;
use crate::problem::Problem;

/// A server that listens, and serves once it is [run](Server::run).
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    app: App,
    lifecycle: Lifecycle,
}

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
        "{0} can be reached from other machines, and no credentials are configured: anybody could \
         do everything"
    )]
    Unguarded(SocketAddr),
    /// The stores cannot be opened.
    #[error("{}", .0.detail())]
    Stores(Box<Problem>),
}

impl Server {
    /// Opens the stores, and begins to listen.
    pub async fn bind(config: &Config, data: &Data) -> Result<Self, StartError> {
        if !config.listen.ip().is_loopback() {
            return Err(StartError::Unguarded(config.listen));
        }
        let lifecycle = Lifecycle::new();
        let app = App::open(config, data, Auth::Local, lifecycle.clone());
        let app = app.await.map_err(|problem| StartError::Stores(Box::new(problem)))?;
        let unable = |source| StartError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(unable)?;
        let address = listener.local_addr().map_err(unable)?;
        Ok(Self { listener, address, app, lifecycle })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` comes: then takes no new connections, ends watches, and waits for the
    /// requests that are under way.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listener, app, lifecycle, .. } = self;
        let router = http::router(app.clone());
        let serving = listener::serve(listener, router, app);
        tokio::pin!(serving);
        tokio::select! {
            () = serving.as_mut() => {}
            () = stop => {
                lifecycle.stop();
                serving.await;
            }
        }
    }
}
