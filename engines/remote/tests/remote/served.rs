//! A server for one test.

use keyward::schema::Schema;
use keyward::{Data, Store};
use keyward_remote::{Address, ApiKey, Options, Remote};
use keyward_server::{Config, Server, without_schema};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server that runs as long as this is kept.
pub struct Served {
    pub url: String,
    /// What the first key is made with.
    pub start_token: Option<String>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Served {
    /// One on a store called `main`.
    pub async fn on(store: &str) -> Self {
        Self::start(&configured(), &without_schema(store).unwrap()).await
    }

    /// One with what a schema declares.
    pub async fn with_schema(schema: &str) -> Self {
        let schema = Schema::parse(schema, "schema.toml").unwrap();
        Self::start(&configured(), &Data::new(schema)).await
    }

    pub async fn start(config: &Config, data: &Data) -> Self {
        let server = Server::bind(config, data).await.unwrap();
        let url = server.url();
        let start_token = server.start_token().map(str::to_owned);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        Self { url, start_token, stop: Some(stop), task }
    }

    pub async fn engine(&self) -> Remote {
        opened(&self.url, None).await.unwrap()
    }

    pub async fn store(&self) -> Store {
        Store::new(self.engine().await)
    }

    /// Stops it as a signal would, and waits for its end.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }
}

/// The store `main` of a server.
pub async fn opened(server: &str, key: Option<&str>) -> keyward::Result<Remote> {
    let key = key.map(|key| ApiKey::new(key).unwrap());
    let options = Options { key, ..Options::default() };
    Remote::open(&Address::new(server, Some("main"))?, &options).await
}

/// A free port of this machine; what the server keeps for itself lies elsewhere, so that the store
/// holds what the test writes and nothing else.
pub fn configured() -> Config {
    Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        control: Some("memory:".to_owned()),
        ..Config::default()
    }
}
