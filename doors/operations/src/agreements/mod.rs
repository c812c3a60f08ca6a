//! The workspaces of agreements that a server keeps: their workers, what follows a change of their pages,
//! and what of a store is theirs.

mod claimed;
mod upkeep;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use keyward::agreements::{Options, Settings, Workspace};
use keyward::models::Models;
use keyward::{Code, Data};

pub use claimed::claimed;
pub use upkeep::{LookDue, SELF};

use crate::background::Tasks;
use crate::config::{ServicesConfig, WorkspaceConfig};
use crate::lifecycle::Lifecycle;
use crate::metrics::ServiceMetrics;
use crate::problem::{Problem, Result};
use crate::shares::Shares;
use crate::stores::Stores;

/// How many attachments are in memory at a time, on their way in or out.
const TRANSFERS_MAX: usize = 8;

/// The workspaces that a server keeps.
#[derive(Debug)]
pub struct Agreements {
    kept: BTreeMap<String, Kept>,
    tasks: Tasks,
    transfers: Shares,
}

/// A workspace that a server keeps. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The workspace itself.
    pub workspace: Workspace,
    /// Its settings.
    pub settings: Arc<Settings>,
    name: Arc<str>,
    /// The name of the store that it is in.
    store: Arc<str>,
    models: Option<Arc<Models>>,
}

impl Agreements {
    /// The workspaces of a configuration, in stores that are open. Nothing is begun yet.
    pub fn open(
        config: &ServicesConfig,
        data: &Data,
        stores: &Stores,
        metrics: &ServiceMetrics,
    ) -> Result<Self> {
        let mut kept = BTreeMap::new();
        for one in &config.agreements {
            let workspace = Kept::open(one, config, data, stores, metrics)?;
            if kept.insert(one.name.clone(), workspace).is_some() {
                return Err(unkept(&one.name, &"there are two of this name"));
            }
        }
        Ok(Self { kept, tasks: Tasks::default(), transfers: Shares::new(TRANSFERS_MAX) })
    }

    /// The workspace with a name, if there is one.
    pub fn get(&self, name: &str) -> Option<&Kept> {
        self.kept.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Kept> {
        self.kept.values()
    }

    /// One place for each attachment that may be in memory.
    pub fn transfers(&self) -> &Shares {
        &self.transfers
    }

    /// Begins what goes on for as long as the server runs: tasks, looking at pages that changed, purging
    /// what is gone.
    pub fn start(&self, lifecycle: &Lifecycle) {
        self.start_workers(lifecycle);
        for kept in self.kept.values() {
            let (following, stop) = (kept.clone(), lifecycle.clone());
            self.tasks.spawn(async move { following.follow_pages(&stop).await });
            let (purging, stop) = (kept.clone(), lifecycle.clone());
            self.tasks.spawn(async move { purging.purge_daily(&stop).await });
        }
    }

    /// Begins to work off tasks.
    pub fn start_workers(&self, lifecycle: &Lifecycle) {
        for kept in self.kept.values() {
            let (working, stop) = (kept.clone(), lifecycle.clone());
            self.tasks.spawn(async move { working.work_off(&stop).await });
        }
    }

    /// Begins nothing more, and waits for what is under way; what takes longer is dropped, and taken over
    /// by another worker.
    pub async fn close(&self, time_max: Duration) {
        self.tasks.close(time_max).await;
    }
}

impl Kept {
    fn open(
        one: &WorkspaceConfig,
        config: &ServicesConfig,
        data: &Data,
        stores: &Stores,
        metrics: &ServiceMetrics,
    ) -> Result<Self> {
        let settings = &one.settings;
        let store = store_of(one, data)?;
        let models = match (&one.models, &settings.models) {
            (Some(models), _) => Some(models.clone()),
            (None, Some(settings)) => {
                let opened = Models::open(settings, seed()?);
                Some(Arc::new(opened.map_err(|error| unkept(&one.name, &error))?))
            }
            (None, None) => None,
        };
        settings.check().map_err(|error| unkept(&one.name, &error))?;
        let options = Options { metrics: metrics.tasks(&one.name), ..Options::default() };
        let workspace = settings.open_with(
            stores.get(store)?.store().clone(),
            config.clock.clone(),
            one.sandbox.clone(),
            models.clone(),
            options,
        );
        Ok(Self {
            workspace: workspace.map_err(|error| unkept(&one.name, &error))?,
            settings: Arc::new(settings.clone()),
            name: one.name.as_str().into(),
            store: store.into(),
            models,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the store that it is in.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// What translates and analyses, if anything does.
    pub fn models(&self) -> Option<&Models> {
        self.models.as_deref()
    }
}

fn seed() -> Result<u64> {
    getrandom::u64()
        .map_err(|error| Problem::new(Code::Internal, format!("there is no randomness: {error}")))
}

/// The store that a workspace is in.
fn store_of<'d>(one: &WorkspaceConfig, data: &'d Data) -> Result<&'d str> {
    let store = data.agreements_store(one.settings.store.as_deref());
    store.map_err(|error| unkept(&one.name, &error))
}

fn unkept(workspace: &str, reason: &impl ToString) -> Problem {
    let reason = reason.to_string();
    Problem::invalid(format!("the workspace {workspace} cannot be kept: {reason}"))
}
