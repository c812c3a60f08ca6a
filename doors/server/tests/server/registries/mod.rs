//! Registries over HTTP, of real repositories.

mod attack;
mod background;
mod hooks;
mod letters;
mod reading;
mod running;
mod starting;

use keyward::locks::{Guard, LockPath, Locks, Mode, Options, Request, Tried};
use keyward::{Data, Key, Store, SystemClock};
use keyward_server::{Config, RegistryConfig, without_schema};
use serde_json::{Value, json};

use crate::fixture::{Running, configured, told};
use crate::repository::Repository;
use crate::watching::Events;

/// The registry that tests have.
pub const AT: &str = "/v1/registries/policies";

/// A repository with some policies, and a server that keeps a registry of it.
pub struct Served {
    pub repository: Repository,
    pub server: Running,
    pub store: Store,
}

/// A repository with two policies.
pub fn repository() -> Repository {
    let repository = Repository::new();
    repository.write("학칙.md", "# 학칙 규정\n\n제1조\n").write("b/휴학.md", "# Leave\n");
    repository.commit("first");
    repository
}

/// A registry of a repository, with more settings.
pub fn registry(repository: &Repository, more: Value) -> RegistryConfig {
    let mut settings = json!({ "repository": repository.location(), "schedule": "off" });
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    RegistryConfig {
        name: "policies".to_owned(),
        settings: serde_json::from_value(settings).unwrap(),
        cache: repository.beside("cache"),
    }
}

impl Served {
    pub async fn new() -> Self {
        Self::with(json!({})).await
    }

    pub async fn with(more: Value) -> Self {
        let repository = repository();
        let config = Config { registries: vec![registry(&repository, more)], ..configured() };
        Self::start(repository, config).await
    }

    pub async fn start(repository: Repository, config: Config) -> Self {
        let data: Data = without_schema("memory:").unwrap();
        let store = data.records("main").await.unwrap().store().clone();
        Self { server: Running::start(&config, &data).await, repository, store }
    }

    /// Runs it, and waits for the end.
    pub async fn run(&self) -> Value {
        let begun = told(200, self.server.post(&format!("{AT}/runs?wait=true"), "{}")).await;
        assert_eq!(begun["outcome"], "ended", "{begun}");
        begun["run"].clone()
    }

    /// Holds the registry as a run of another process would.
    pub async fn held(&self) -> Guard {
        let locks = Locks::new(self.store.clone(), SystemClock, Options::default()).unwrap();
        let root = locks.root(Key::parse("system:registry:policies:lock").unwrap()).unwrap();
        let request = Request::default();
        match root.try_acquire(&[LockPath::root()], Mode::Exclusive, &request).await.unwrap() {
            Tried::Granted(guard) => guard,
            Tried::Held(holder) => panic!("{holder:?}"),
        }
    }

    /// What is told of runs, from the beginning of the store's history on.
    pub async fn events(&self) -> Events {
        Events::new(self.server.get(&format!("{AT}/runs/events?since=0"))).await
    }
}

/// The next run that ended, of those that are told.
pub async fn ended(events: &mut Events) -> Value {
    loop {
        let (name, _, data) = events.next().await.unwrap();
        if name == "run" && data["status"] != "running" {
            return data;
        }
    }
}
