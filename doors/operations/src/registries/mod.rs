//! The registries that a server keeps: their runs, their consumers, and what of a store is theirs.

mod claimed;
mod course;
mod pushes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use keyward::registry::{OpenStore, Options, Progress, Registry, SyncOptions, Synced, Trigger};
use keyward::{Data, Key};
use tokio::sync::{Notify, broadcast};

pub use claimed::claimed;
pub use course::{Course, Stage};

use crate::background::{Pauses, Tasks};
use crate::config::{RegistryConfig, ServicesConfig};
use crate::lifecycle::Lifecycle;
use crate::metrics::ServiceMetrics;
use crate::problem::{Problem, Result};
use crate::stores::Stores;

/// How much of a run's progress somebody who watches may be behind before some is left out.
const PROGRESS_BEHIND_MAX: usize = 64;

/// The registries that a server keeps.
#[derive(Debug, Default)]
pub struct Registries {
    kept: BTreeMap<String, Kept>,
    tasks: Arc<Tasks>,
}

/// A registry that a server keeps. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The registry itself.
    pub registry: Registry,
    /// The name of the store that it is in.
    store: Arc<str>,
    /// How far runs of this server are.
    progress: broadcast::Sender<Progress>,
    /// That something was pushed. However often it is said, one run is behind the one under way.
    pushed: Arc<Notify>,
    tasks: Arc<Tasks>,
}

impl Registries {
    /// The registries of a configuration, in stores that are open. Nothing is begun yet.
    pub fn open(
        config: &ServicesConfig,
        data: &Data,
        stores: &Stores,
        metrics: &ServiceMetrics,
    ) -> Result<Self> {
        let mut registries = Self::default();
        for one in &config.registries {
            let store = store_of(one, data)?;
            let registry = Registry::open_with(
                &one.name,
                stores.get(store)?.store().clone(),
                one.settings.clone(),
                &one.cache,
                config.clock.clone(),
                Options {
                    metrics: metrics.registry(&one.name),
                    open_store: Some(OpenStore::new(|url| {
                        Box::pin(async move { keyward::open(&url).await })
                    })),
                    ..Options::default()
                },
            );
            let kept = Kept {
                registry: registry.map_err(|error| unkept(&one.name, &error))?,
                store: store.into(),
                progress: broadcast::Sender::new(PROGRESS_BEHIND_MAX),
                pushed: Arc::default(),
                tasks: registries.tasks.clone(),
            };
            if registries.kept.insert(one.name.clone(), kept).is_some() {
                return Err(unkept(&one.name, &"there are two of this name"));
            }
        }
        Ok(registries)
    }

    /// The registry with a name, if there is one.
    pub fn get(&self, name: &str) -> Option<&Kept> {
        self.kept.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Kept> {
        self.kept.values()
    }

    /// Begins what goes on for as long as the server runs: scheduled runs, runs after pushes, telling
    /// consumers.
    pub fn start(&self, lifecycle: &Lifecycle) {
        for kept in self.kept.values() {
            let (on_time, after_pushes) = (kept.clone(), kept.clone());
            let stop = lifecycle.clone();
            self.tasks.spawn(async move { on_time.run_on_time(&stop).await });
            let stop = lifecycle.clone();
            self.tasks.spawn(async move { after_pushes.run_after_pushes(&stop).await });
            if !kept.registry.settings().consumers.is_empty() {
                let (telling, stop) = (kept.clone(), lifecycle.clone());
                self.tasks.spawn(async move { telling.tell_consumers(&stop).await });
            }
        }
    }

    /// Begins nothing more, and waits for what is under way; what takes longer is dropped, and gone on
    /// with by the next run.
    pub async fn close(&self, time_max: Duration) {
        self.tasks.close(time_max).await;
    }
}

impl Kept {
    /// The name of the store that it is in.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Where it keeps something of a policy: its entry (`policy`), or a `dead-letter`.
    pub fn key(&self, kind: &str, policy: &str) -> Result<Key> {
        let prefix = self.registry.settings().prefix.as_deref();
        Key::from_segments(prefix.into_iter().chain([kind, policy]))
            .map_err(|error| Problem::invalid(error.to_string()))
    }

    /// How far runs of this server are, from now on.
    pub fn progress(&self) -> broadcast::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Begins a run, which goes on when nobody waits for it.
    pub fn begin(&self, options: SyncOptions) -> Result<Course> {
        let (course, told) = Course::new();
        let kept = self.clone();
        let run = async move {
            let seen = |progress| {
                told.begin();
                kept.tell(progress);
            };
            let ended = kept.registry.sync(Trigger::Hand, &options, seen).await;
            told.end(ended.map_err(Problem::from));
        };
        match self.tasks.spawn(run) {
            true => Ok(course),
            false => Err(course::stopping()),
        }
    }

    /// Says that something was pushed: a run is begun, or follows the one that is under way.
    pub fn push(&self) {
        self.pushed.notify_one();
    }

    /// Runs, and tells those who watch how far it is.
    async fn run(&self, trigger: Trigger) -> keyward::registry::Result<Synced> {
        let seen = |progress| self.tell(progress);
        let ended = self.registry.sync(trigger, &SyncOptions::default(), seen).await;
        let (registry, trigger) = (self.registry.name(), trigger.as_str());
        match &ended {
            Ok(Synced::Done(run)) => {
                let (id, status) = (&run.id, run.status.as_str());
                tracing::info!(registry, trigger, id, status, "a run ended");
            }
            Ok(_) => tracing::debug!(registry, trigger, "there was nothing to run"),
            Err(error) => tracing::debug!(registry, trigger, %error, "a run failed"),
        }
        ended
    }

    fn tell(&self, progress: Progress) {
        // Nobody may be watching.
        let _ = self.progress.send(progress);
    }

    /// Runs when it is time, until the server stops.
    async fn run_on_time(&self, lifecycle: &Lifecycle) {
        let mut pauses = Pauses::default();
        let begin = |_moment| self.run(Trigger::Schedule);
        while let Err(error) = self.registry.keep_schedule(lifecycle.stopping(), begin).await {
            tracing::warn!(registry = self.registry.name(), %error, "no run is begun on time now");
            if !pauses.wait(lifecycle).await {
                return;
            }
        }
    }

    /// Tells consumers of changes, until the server stops.
    async fn tell_consumers(&self, lifecycle: &Lifecycle) {
        let mut pauses = Pauses::default();
        while let Err(error) = self.registry.work(lifecycle.stopping()).await {
            tracing::warn!(registry = self.registry.name(), %error, "consumers cannot be told now");
            if !pauses.wait(lifecycle).await {
                return;
            }
        }
    }
}

/// The store that a registry is in.
fn store_of<'d>(one: &RegistryConfig, data: &'d Data) -> Result<&'d str> {
    let store = data.registry_store(one.settings.store.as_deref());
    store.map_err(|error| unkept(&one.name, &error))
}

fn unkept(registry: &str, reason: &impl ToString) -> Problem {
    let reason = reason.to_string();
    Problem::invalid(format!("the registry {registry} cannot be kept: {reason}"))
}
