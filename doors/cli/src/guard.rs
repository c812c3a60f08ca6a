//! Write rules for the CLI: refuses plain writes, locks and cached results on keys that belong to something else.

use keyward::remote::{Connection, Options};
use keyward::rules::{Keeper, RegistryKeys, Reserved, SparedRoots, WorkspaceKeys, WriteRules};
use keyward::schema::Published;
use keyward::{Data, ErrorKind, Key, Store, StoreUrl};

use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::note;
use crate::served;
use crate::store_choice::Choice;

/// The rules for plain writes to the store that is meant, unless they are to be written past.
pub struct Guard {
    rules: Option<WriteRules>,
    /// Whether the store gives out which keys are the roots of locks.
    shows_roots: bool,
}

impl Guard {
    /// What is known before the store is opened: the schema, or that of the server, and the config file.
    /// With `--raw` there is no rule, and a warning says so.
    pub async fn new(target: &Target, raw: bool) -> Result<Self> {
        if raw {
            note(
                "warning: --raw writes past schemas, indexes, locks and Keyward's own keys, and keeps \
                 none of them right; check the store with keyward doctor afterwards",
            );
            return Ok(Self { rules: None, shows_roots: false });
        }
        if let Some(server) = target.server()? {
            return Self::of_server(&server.url()?).await;
        }
        let choice = Choice::of(target)?;
        let store = choice.store()?.to_owned();
        Self::of_store(&choice, &store, target).await
    }

    /// The rules of one of the stores of this machine.
    pub async fn of_store(choice: &Choice, store: &str, target: &Target) -> Result<Self> {
        let url = choice.data.url(store)?;
        match url.parse::<StoreUrl>()?.engine() {
            "keyward+http" | "keyward+https" => Self::of_server(&url).await,
            _ => Ok(Self::with(of_files(choice, store, target)?)),
        }
    }

    /// The rules of a store behind a server.
    pub async fn of_server(url: &str) -> Result<Self> {
        Ok(Self::with(of_server(url.parse()?).await?))
    }

    fn with(rules: WriteRules) -> Self {
        Self { rules: Some(rules), shows_roots: false }
    }

    /// Whether there are rules to keep to.
    pub fn is_active(&self) -> bool {
        self.rules.is_some()
    }

    /// Refuses a key that a plain write must leave alone, as far as the rules are known by now.
    pub fn admit(&self, key: &Key) -> Result {
        match &self.rules {
            Some(rules) => {
                rules.admit(key).map_err(|reserved| Failure::from(keyward::Error::from(reserved)))
            }
            None => Ok(()),
        }
    }

    /// Refuses keys of which a plain write must leave one alone: the roots of locks that no schema declares
    /// among them, as far as the store gives these out. Asked before the first of several commits, so that
    /// none is made if one of them would be refused.
    pub async fn admit_all(&self, store: &Store, keys: &[Key]) -> Result {
        keys.iter().try_for_each(|key| self.admit(key))?;
        if self.shows_roots {
            SparedRoots::find(store, keys).await?.map_err(keyward::Error::from)?;
        }
        Ok(())
    }

    /// Refuses a key that cannot be the root of locks: one that belongs to something else.
    pub fn admit_root(&self, key: &Key) -> Result {
        let keeper = self.rules.as_ref().and_then(|rules| rules.keeper(key));
        match keeper {
            None | Some(Keeper::Locks) => Ok(()),
            Some(keeper) => {
                let reserved = Reserved { key: key.clone(), keeper };
                Err(Failure::from(keyward::Error::from(reserved)))
            }
        }
    }

    /// The store with commits that break the rules refused. Adds what the store says about itself.
    pub async fn over(&mut self, store: Store) -> Result<Store> {
        let Some(rules) = &mut self.rules else { return Ok(store) };
        match rules.learn(&store).await {
            Ok(()) => {
                self.shows_roots = true;
                Ok(rules.clone().guard(store))
            }
            // A server that keeps its own keys from us applies the rule to our writes itself.
            Err(error) if matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::Reserved) => {
                Ok(store)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The rules of a store behind a server.
async fn of_server(url: StoreUrl) -> Result<WriteRules> {
    let (address, options) = Options::from_url(url)?;
    let data = match Connection::new(address.server(), &options)?.get("/v1/schema").await {
        Ok(answer) => served::data_of(&served::read::<Published>(&answer)?, address.server())?,
        // Whoever may not read it does not get past the server's own rule either.
        Err(error) if error.kind() == ErrorKind::Forbidden => {
            return Ok(WriteRules::without_schema());
        }
        Err(error) => return Err(error.into()),
    };
    match address.store().or(data.default_store()) {
        Some(store) => Ok(of_schema(&data, store)),
        None => Ok(WriteRules::without_schema()),
    }
}

/// The rules of a store of this machine, from the schema and the config file.
fn of_files(choice: &Choice, store: &str, target: &Target) -> Result<WriteRules> {
    if let Some((data, store)) = choice.possible_store() {
        return rules_of(target, data, store);
    }
    if choice.schema.is_some() {
        return rules_of(target, &choice.data, store);
    }
    // Without a schema there is one store, which config files call by no name, unless -s means another.
    let is_the_only_one = !target.store_is_asked_for();
    with_systems(WriteRules::without_schema(), target, |_, _| is_the_only_one)
}

/// The rules of a store that a schema declares, with the registries and the workspace that the config file
/// has in it. A server says itself what it has in a store.
pub fn rules_of(target: &Target, data: &Data, store: &str) -> Result<WriteRules> {
    let rules = of_schema(data, store);
    if target.server()?.is_some() {
        return Ok(rules);
    }
    with_systems(rules, target, |system, named| {
        let found = match system {
            System::Registry => data.registry_store(named),
            System::Workspace => data.agreements_store(named),
        };
        found.is_ok_and(|found| found == store)
    })
}

/// What a config file has in stores.
enum System {
    Registry,
    Workspace,
}

/// The rules with those of the registries and workspaces in the config file that are in the store: they say
/// the name of theirs, or none.
fn with_systems(
    mut rules: WriteRules,
    target: &Target,
    is_here: impl Fn(System, Option<&str>) -> bool,
) -> Result<WriteRules> {
    for (name, settings) in target.registries()?.declared {
        if is_here(System::Registry, settings.store.as_deref()) {
            rules = rules.with_registry(RegistryKeys::new(&name, settings.prefix.as_deref())?);
        }
    }
    for (name, settings) in target.agreements()?.declared {
        if is_here(System::Workspace, settings.store.as_deref()) {
            rules = rules.with_workspace(WorkspaceKeys::new(&name));
        }
    }
    Ok(rules)
}

fn of_schema(data: &Data, store: &str) -> WriteRules {
    let holds_agents = data.agents_store().is_ok_and(|it| it == store);
    WriteRules::of_schema(data.schema(), store, holds_agents)
}
