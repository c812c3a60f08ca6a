//! Write rules for the CLI: refuses plain writes, locks and cached results on keys that belong to something else.

use keyward::remote::{Connection, Options};
use keyward::rules::{Keeper, RegistryKeys, Reserved, WorkspaceKeys, WriteRules};
use keyward::schema::Published;
use keyward::{Data, ErrorKind, Key, Store, StoreUrl};

use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::note;
use crate::served;

/// The rules for plain writes to the store that is meant, unless they are to be written past.
pub struct Guard(Option<WriteRules>);

impl Guard {
    /// What is known before the store is opened: the schema, or that of the server, and the config file.
    /// With `--raw` there is no rule, and a warning says so.
    pub async fn new(target: &Target, raw: bool) -> Result<Self> {
        if raw {
            note(
                "warning: --raw writes past schemas, indexes, locks and Keyward's own keys, and keeps \
                 none of them right; check the store with keyward doctor afterwards",
            );
            return Ok(Self(None));
        }
        let url: StoreUrl = target.url()?.parse()?;
        let rules = match url.engine() {
            "keyward+http" | "keyward+https" => of_server(url).await?,
            _ => of_files(target)?,
        };
        Ok(Self(Some(rules)))
    }

    /// Whether there are rules to keep to.
    pub fn is_active(&self) -> bool {
        self.0.is_some()
    }

    /// Refuses a key that a plain write must leave alone, as far as the rules are known by now.
    pub fn admit(&self, key: &Key) -> Result {
        match &self.0 {
            Some(rules) => {
                rules.admit(key).map_err(|reserved| Failure::from(keyward::Error::from(reserved)))
            }
            None => Ok(()),
        }
    }

    /// Refuses a key that cannot be the root of locks: one that belongs to something else.
    pub fn admit_root(&self, key: &Key) -> Result {
        let keeper = self.0.as_ref().and_then(|rules| rules.keeper(key));
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
        let Some(rules) = &mut self.0 else { return Ok(store) };
        match rules.learn(&store).await {
            Ok(()) => Ok(rules.clone().guard(store)),
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
    let schema = match Connection::new(address.server(), &options)?.get("/v1/schema").await {
        Ok(answer) => served::read::<Published>(&answer)?.schema(address.server())?,
        // Whoever may not read it does not get past the server's own rule either.
        Err(error) if error.kind() == ErrorKind::Forbidden => {
            return Ok(WriteRules::without_schema());
        }
        Err(error) => return Err(error.into()),
    };
    let stores = schema.stores.iter().map(|store| store.name.clone());
    let Some(store) = address.store().map(str::to_owned).or(stores.min()) else {
        return Ok(WriteRules::without_schema());
    };
    let data = Data::new(schema);
    Ok(of_schema(&data, &store))
}

/// The rules of the store that is meant, from the schema and the config file.
fn of_files(target: &Target) -> Result<WriteRules> {
    let url = target.url()?;
    let data = match target.schema_file_if_any()? {
        Some(file) => Some(Data::load(&file)?),
        None => None,
    };
    let data = data.map(|data| target.placed(data.clone()).unwrap_or(data));
    let store = data.as_ref().and_then(|data| {
        let mut stores = data.schema().stores.iter();
        let is_meant = |name: &str| data.url(name).is_ok_and(|at| is_same(&at, &url));
        stores.find(|store| is_meant(&store.name)).map(|store| (data, store.name.as_str()))
    });
    let mut rules = match store {
        Some((data, store)) => of_schema(data, store),
        None => WriteRules::without_schema(),
    };
    // Without a schema there is one store, which config files call by no name, unless -s means another.
    let is_in =
        |in_schema: fn(&Data, Option<&str>) -> Option<String>, named: Option<&str>| match store {
            Some((data, store)) => in_schema(data, named).is_some_and(|it| it == store),
            None => data.is_none() && !target.store_is_asked_for(),
        };
    let registry_store =
        |data: &Data, named: Option<&str>| data.registry_store(named).ok().map(str::to_owned);
    for (name, settings) in target.registries()?.declared {
        if is_in(registry_store, settings.store.as_deref()) {
            rules = rules.with_registry(RegistryKeys::new(&name, settings.prefix.as_deref())?);
        }
    }
    let agreements_store =
        |data: &Data, named: Option<&str>| data.agreements_store(named).ok().map(str::to_owned);
    for (name, settings) in target.agreements()?.declared {
        if is_in(agreements_store, settings.store.as_deref()) {
            rules = rules.with_workspace(WorkspaceKeys::new(&name));
        }
    }
    Ok(rules)
}

fn of_schema(data: &Data, store: &str) -> WriteRules {
    let holds_agents = data.agents_store().is_ok_and(|it| it == store);
    WriteRules::of_schema(data.schema(), store, holds_agents)
}

/// Whether two URLs name one store.
fn is_same(one: &str, other: &str) -> bool {
    let directory = |url: &str| {
        let url: StoreUrl = url.parse().ok().filter(|url: &StoreUrl| url.engine() == "embedded")?;
        let place = std::path::absolute(url.place()).ok()?;
        Some(place.canonicalize().unwrap_or(place))
    };
    one == other || directory(one).is_some_and(|place| directory(other) == Some(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_directory_is_one_store_however_it_is_written() {
        let folder = std::env::current_dir().unwrap();
        let whole = format!("embedded:{}/data", folder.display());
        assert!(is_same("embedded:./data", &whole));
        assert!(is_same("embedded:data?durability=relaxed", &whole));
        assert!(!is_same("embedded:./data2", &whole));
        assert!(is_same("memory:", "memory:"));
        assert!(!is_same("postgres://h/a?store=x", "postgres://h/a?store=y"));
    }
}
