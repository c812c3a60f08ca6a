//! The stores that a server serves.

use std::collections::BTreeMap;

use keyward::agents::{self, Agents};
use keyward::cache::{self, Cache};
use keyward::locks::{self, Locks};
use keyward::migrate::{Migration, Report};
use keyward::queue::Jobs;
use keyward::records::Records;
use keyward::rules::WriteRules;
use keyward::schema::{LockTree, Schema, Space as Declaration};
use keyward::{Code, Data, Store, SystemClock, Tier};

use crate::config::ServicesConfig;
use crate::feed::Feed;
use crate::metrics::ServiceMetrics;
use crate::problem::{Problem, Result};
use crate::work::Work;
use crate::{agreements, registries};

/// The name of the store of a server without a schema.
const STORE_NAME: &str = "main";

/// One store, called `main`, with no declared spaces: for servers without a schema.
pub fn without_schema(url: &str) -> keyward::records::Result<Data> {
    let schema = Schema::parse(&format!("[stores.{STORE_NAME}]\n"), "the default schema");
    let schema = schema.map_err(|problems| {
        keyward::Error::new(keyward::ErrorKind::Internal, problems.to_string())
    })?;
    Data::new(schema).at(STORE_NAME, url)
}

/// The control store of a server none of whose stores can be one.
pub const CONTROL_DEFAULT: &str = "embedded:./keyward-control";

/// The store that is the control store where nothing names one: the first that keeps more than agent entries.
/// If there is none, it is [`CONTROL_DEFAULT`].
pub fn control_default(data: &Data) -> Option<&str> {
    let has_layout =
        |store: &str| data.url(store).is_ok_and(|url| keyward::has_document_layout(&url));
    let mut stores = data.schema().stores.iter().map(|store| store.name.as_str());
    stores.find(|store| !has_layout(store))
}

/// The stores that a server serves, all open.
#[derive(Debug)]
pub struct Stores {
    served: BTreeMap<String, Served>,
    /// The store of whatever names none.
    default: Option<String>,
    /// What agents keep for users, with the name of the store; or why there is no place for it.
    agents: Result<(String, Agents)>,
    /// Whether the schema declares the space that it is in.
    declares_agents: bool,
}

/// A store that is served.
#[derive(Debug)]
pub struct Served {
    /// Its name in the schema.
    pub name: String,
    /// Its records.
    pub records: Records,
    /// What changes in it.
    pub feed: Feed,
    /// Which of its keys ordinary writes must leave alone.
    pub rules: WriteRules,
    /// Whether the schema says nothing of what the store holds.
    pub schemaless: bool,
    /// Its locks and results, where the engine can compare before it writes.
    shared: Option<(Locks, Cache)>,
    /// Its queues and jobs, or why it can have none.
    jobs: Result<Jobs>,
    /// The plan that is being run.
    pub migrations: Work<Vec<Migration>>,
    /// The doctor who looks through it.
    pub examination: Work<Report>,
}

impl Stores {
    /// Opens every store that is declared.
    pub async fn open(
        data: &Data,
        config: &ServicesConfig,
        metrics: &ServiceMetrics,
    ) -> Result<Self> {
        let mut served = BTreeMap::new();
        for store in &data.schema().stores {
            let records = data.records(&store.name).await?;
            let declared = data.schema().locks.iter().filter(|tree| tree.store == store.name);
            let declared: Vec<LockTree> = declared.cloned().collect();
            let mut rules = rules(&records, &declared, data, config, &store.name)?;
            learn(&mut rules, records.store()).await;
            // Before those of the schema: what a workspace locks, nothing may call otherwise.
            let mut trees = Vec::new();
            if rules.has_workspace() {
                trees.push(keyward::agreements::lock_tree(&store.name)?);
            }
            trees.extend(declared);
            let (clock, options) = (config.clock.clone(), config.queues.clone());
            let jobs = Jobs::new(records.store().clone(), clock, options);
            let one = Served {
                name: store.name.clone(),
                rules,
                feed: Feed::new(records.store().clone()),
                schemaless: data.schema().spaces.is_empty(),
                shared: shared(records.store(), trees, metrics)?,
                records,
                jobs: jobs.map(|jobs| jobs.counting(metrics.queues.clone())).map_err(Problem::from),
                migrations: Work::default(),
                examination: Work::default(),
            };
            served.insert(store.name.clone(), one);
        }
        let agents = agents(data, config, &served);
        let declares_agents = data.schema().space(agents::SPACE).is_some();
        let default = data.default_store().map(str::to_owned);
        Ok(Self { served, default, agents, declares_agents })
    }

    /// The name of the store of whatever names none.
    pub fn default_store(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// The store with a name.
    pub fn get(&self, name: &str) -> Result<&Served> {
        self.served.get(name).ok_or_else(|| {
            let detail = format!("there is no store called {name:?}");
            Problem::new(Code::UnknownStore, detail).hint("GET /v1/stores lists what there is.")
        })
    }

    /// The declared space with a name, and the store that it lives in.
    pub fn space(&self, name: &str) -> Option<(&Served, &Declaration)> {
        self.served.values().find_map(|served| {
            Some((served, self.declared(served).find(|space| space.name == name)?))
        })
    }

    /// The spaces of a store that the schema declares: all but the built-in one of agents' entries.
    pub fn declared<'s>(
        &self,
        served: &'s Served,
    ) -> impl Iterator<Item = &'s Declaration> + use<'s> {
        let hidden = (!self.declares_agents).then_some(agents::SPACE);
        served.records.declarations().filter(move |space| hidden != Some(space.name.as_str()))
    }

    /// What agents keep for users, and the name of the store that it is in.
    pub fn agents(&self) -> Result<(&str, &Agents)> {
        match &self.agents {
            Ok((store, agents)) => Ok((store, agents)),
            Err(problem) => Err(problem.clone()),
        }
    }

    /// Waits until what was given up, in line for a lock, is out of the stores.
    pub async fn settled(&self) {
        for (locks, cache) in self.served.values().filter_map(|served| served.shared.as_ref()) {
            locks.settled().await;
            cache.locks().settled().await;
        }
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Served> {
        self.served.values()
    }
}

/// Which keys of a store ordinary writes must leave alone.
fn rules(
    records: &Records,
    trees: &[LockTree],
    data: &Data,
    config: &ServicesConfig,
    store: &str,
) -> Result<WriteRules> {
    let roots = trees.iter().map(|tree| tree.root.clone());
    let rules = WriteRules::new(records.declarations(), roots);
    let registries = registries::claimed(store, records.declarations(), data, config)?;
    let rules = registries.into_iter().fold(rules, WriteRules::with_registry);
    Ok(match agreements::claimed(store, records.declarations(), data, config)? {
        Some(workspace) => rules.with_workspace(workspace),
        None => rules,
    })
}

/// Adds what a store says of itself: spaces, registries and a workspace that this server does not keep.
/// What cannot be read is left: the stores that keep it to themselves apply the rules themselves.
async fn learn(rules: &mut WriteRules, store: &Store) {
    if let Err(error) = rules.learn(store).await {
        tracing::warn!(%error, "what the store says of its own keys cannot be read");
    }
}

/// What agents keep for users. A schema with no place for it is served all the same.
fn agents(
    data: &Data,
    config: &ServicesConfig,
    served: &BTreeMap<String, Served>,
) -> Result<(String, Agents)> {
    let store = data.agents_store()?;
    let Some(served) = served.get(store) else {
        return Err(Problem::new(Code::Internal, format!("the store {store} is not open")));
    };
    let options = config.agents.clone();
    let agents = Agents::open(served.records.clone(), options, config.clock.clone())?;
    Ok((store.to_owned(), agents))
}

/// What a store has for several processes to work together.
fn shared(
    store: &Store,
    trees: Vec<LockTree>,
    metrics: &ServiceMetrics,
) -> Result<Option<(Locks, Cache)>> {
    if store.capabilities().tier() == Tier::Advisory {
        return Ok(None);
    }
    let options =
        locks::Options { trees, metrics: metrics.locks.clone(), ..locks::Options::default() };
    let locks = Locks::new(store.clone(), SystemClock, options)?;
    let options = cache::Options {
        metrics: metrics.cache.clone(),
        lock_metrics: metrics.locks.clone(),
        ..cache::Options::default()
    };
    Ok(Some((locks, Cache::new(store.clone(), SystemClock, options)?)))
}

impl Served {
    /// Its locks.
    pub fn locks(&self) -> Result<&Locks> {
        self.shared.as_ref().map(|(locks, _)| locks).ok_or_else(|| self.compares_nothing("locks"))
    }

    /// Its results of expensive work.
    pub fn cache(&self) -> Result<&Cache> {
        self.shared.as_ref().map(|(_, cache)| cache).ok_or_else(|| self.compares_nothing("results"))
    }

    fn compares_nothing(&self, what: &str) -> Problem {
        let engine = self.store().capabilities().engine;
        let detail =
            format!("the {engine} engine cannot compare before it writes: it keeps no {what}");
        Problem::new(Code::Unsupported, detail)
            .hint("Name a coordinator for the store, or use one on another engine.")
    }

    /// The store itself.
    pub fn store(&self) -> &Store {
        self.records.store()
    }

    /// Its queues and jobs. Refused where the engine cannot keep them.
    pub fn jobs(&self) -> Result<&Jobs> {
        self.jobs.as_ref().map_err(Problem::clone)
    }
}
