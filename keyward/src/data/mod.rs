//! The stores of a schema, each opened when it is first needed.

mod coordinators;
mod place;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use keyward_agents::{self as agents, Agents};
use keyward_engine::{Capabilities, Error as StoreError, ErrorKind, ExpirySupport, Limits, Store};
use keyward_engine::{SystemClock, Tier};
use keyward_records::{Caller, Error, Records, Result, Space};
use keyward_schema::{Problem, Problems, Schema, StoreLimits};

use self::place::Place;
use crate::open;

/// The name of the default store, where there are several and nothing else chooses one.
const STORE_DEFAULT_NAME: &str = "main";

/// What a schema declares, with the stores it lives in. Cheap to clone.
///
/// A store is opened when something in it is first asked for, and stays open; the others are left
/// alone, so that reading one space does not need every database.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use keyward::records::{Caller, Draft};
/// use keyward::schema::Schema;
/// use keyward::{Bindings, Data, Json};
///
/// let schema = Schema::parse(
///     r#"
///     [stores.app]
///     url = "memory:"
///     [spaces.notes]
///     key = "user:{user}:notes:{note}"
///     ownership = "user"
///     "#,
///     "schema.toml",
/// )?;
/// let data = Data::new(schema);
/// let notes = data.space("notes", &Caller::user("ada")).await?;
/// let key = notes.key(Bindings::new().with("note", "n1"))?;
/// notes.put(&key, Draft::new(Json::parse(r#"{"title":"hi"}"#)?)).await?;
/// assert_eq!(notes.get(&key).await?.unwrap().value.as_str(), r#"{"title":"hi"}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// One of the stores also has the space that agents' entries are in, whether the schema declares it or
/// not: see [`Data::agents_store`].
#[derive(Clone)]
pub struct Data {
    schema: Arc<Schema>,
    places: BTreeMap<String, Place>,
    /// The store that was chosen as the default.
    default: Option<String>,
    agents: agents::Options,
}

impl Data {
    /// The stores of a schema where the schema says; embedded ones relative to the current
    /// directory. Nothing is opened yet.
    pub fn new(schema: Schema) -> Self {
        Self::beside(schema, Path::new(""))
    }

    /// Reads a schema file. Embedded stores are relative to it, so that it means the same from
    /// everywhere. Nothing is opened yet.
    pub fn load(path: &Path) -> Result<Self, Problems> {
        let folder = path.parent().unwrap_or(Path::new(""));
        Schema::load(path).map(|schema| Self::beside(schema, folder))
    }

    /// The stores of a schema; embedded ones relative to a folder. Nothing is opened yet.
    pub fn beside(schema: Schema, folder: &Path) -> Self {
        let stores = schema.stores.iter();
        let places =
            stores.map(|store| (store.name.clone(), Place::declared(store, folder))).collect();
        let agents = agents::Options::default();
        Self { schema: Arc::new(schema), places, default: None, agents }
    }

    /// The same with other options for what agents keep: the default ones are used otherwise.
    #[must_use]
    pub fn with_agents(mut self, options: agents::Options) -> Self {
        self.agents = options;
        self
    }

    /// The same with a store in another place than the schema says. It keeps the coordinator that the schema
    /// declares for it, if that place is the same under another name, or the schema names none. Refused for a
    /// store that the schema does not declare.
    pub fn at(mut self, store: &str, url: impl Into<String>) -> Result<Self> {
        match self.places.get_mut(store) {
            Some(place) => *place = place.moved(url.into()),
            None => return Err(self.unknown_store(store)),
        }
        Ok(self)
    }

    /// The same with only one of the stores, and what is declared in it. Refused for a store that the
    /// schema does not declare.
    pub fn only(mut self, store: &str) -> Result<Self> {
        self.place(store)?;
        // Afterwards, the others are not known any more.
        if let Some(clash) = coordinators::clash(&self.places, store) {
            return Err(clash.into_error().into());
        }
        let mut schema = Schema::clone(&self.schema);
        schema.stores.retain(|one| one.name == store);
        schema.spaces.retain(|space| space.store == store);
        schema.locks.retain(|tree| tree.store == store);
        self.places.retain(|name, _| name == store);
        self.schema = Arc::new(schema);
        self.default = None;
        Ok(self)
    }

    /// The same with this store as the [default](Data::default_store). Refused for a store that the
    /// schema does not declare.
    pub fn with_default(mut self, store: &str) -> Result<Self> {
        self.place(store)?;
        self.default = Some(store.to_owned());
        Ok(self)
    }

    /// Whether [`Data::with_default`] chose a store.
    pub fn has_default(&self) -> bool {
        self.default.is_some()
    }

    /// The store of everything that names none: the one that [`Data::with_default`] chose; else the only
    /// one; else the one called `main`; else there is none.
    pub fn default_store(&self) -> Option<&str> {
        if let Some(chosen) = &self.default {
            return Some(chosen);
        }
        let found = match self.schema.stores.as_slice() {
            [only] => Some(only),
            several => several.iter().find(|store| store.name == STORE_DEFAULT_NAME),
        };
        found.map(|store| store.name.as_str())
    }

    /// What is declared.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Where a store is, its coordinator included. An error if neither the schema nor [`Data::at`] says so, and
    /// if what is at the place of its coordinator is something else too.
    pub fn url(&self, store: &str) -> Result<String> {
        let Some(url) = self.place(store)?.whole_url()? else {
            let message = format!("the schema does not say where the store {store} is");
            return Err(StoreError::new(ErrorKind::Invalid, message).into());
        };
        match coordinators::clash(&self.places, store) {
            Some(clash) => Err(clash.into_error().into()),
            None => Ok(url),
        }
    }

    /// What of the schema does not fit the stores that it lives in, with the lines that say it:
    /// urls that name no engine, coordinators that cannot be one, keys, values and lifetimes beyond an
    /// engine's limits. Nothing is opened. Stores of which nobody says where they are are not looked at, nor are those behind a
    /// server. An error if a place
    /// that [`Data::at`] gave is none.
    pub fn check(&self) -> Result<Problems> {
        let mut problems = Vec::new();
        for (store, place) in &self.places {
            let unusable = coordinators::check(&self.places, store);
            if let Some(fault) = unusable {
                let problem = self.schema.unusable_coordinator(store, &fault.message, &fault.hint);
                problems.push(problem);
                continue;
            }
            let (Some(url), Some(whole)) = (&place.url, place.whole_url()?) else { continue };
            let declared = self.schema.store(store).and_then(|store| store.url.as_ref());
            match open::known_capabilities(&whole) {
                Ok(Some(it)) => problems.extend(self.schema.check_limits(store, &limits(&it))),
                Ok(None) => {}
                Err(error) if declared == Some(url) => {
                    problems.push(self.schema.unusable_url(store, error.message()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Problems::new(problems))
    }

    /// The records of a store, which is made if it does not exist. Refused if what the schema
    /// declares does not fit into the store.
    pub async fn records(&self, store: &str) -> Result<Records> {
        let mut opened = self.place(store)?.opened.lock().await;
        if let Some(records) = &*opened {
            return Ok(records.clone());
        }
        let url = self.url(store)?;
        self.fit_url(store, &url)?;
        let found = open::open(&url).await?;
        self.fit(store, found.capabilities())?;
        let records = self.records_in(store, found)?;
        Ok(opened.insert(records).clone())
    }

    /// The records of a store, or nothing if it does not exist: for reading, where a mistyped place
    /// should not leave an empty store behind.
    pub async fn existing_records(&self, store: &str) -> Result<Option<Records>> {
        let mut opened = self.place(store)?.opened.lock().await;
        if let Some(records) = &*opened {
            return Ok(Some(records.clone()));
        }
        let url = self.url(store)?;
        self.fit_url(store, &url)?;
        match open::open_existing(&url).await? {
            Some(found) => {
                self.fit(store, found.capabilities())?;
                Ok(Some(opened.insert(self.records_in(store, found)?).clone()))
            }
            None => Ok(None),
        }
    }

    /// The spaces of a store in an empty store in memory, with the limits of the real one, and its
    /// tier where that can be: to try there what shall be done to it.
    pub async fn scratch(&self, store: &str) -> Result<Records> {
        let real = match open::known_capabilities(&self.url(store)?)? {
            Some(known) => known,
            None => self.records(store).await?.store().capabilities().clone(),
        };
        let url = match real.tier() {
            Tier::Atomic => "memory:",
            // Reads are late where the last writer wins, so nothing could be tried there.
            Tier::Recoverable | Tier::Advisory => "memory:?tier=recoverable",
        };
        self.records_in(store, open::open(url).await?.with_limits(real.limits))
    }

    /// How large things may be in a store, which need not be there. One behind a server is opened, to
    /// ask it.
    pub async fn limits(&self, store: &str) -> Result<Limits> {
        match open::known_capabilities(&self.url(store)?)? {
            Some(known) => Ok(known.limits),
            None => Ok(*self.records(store).await?.store().limits()),
        }
    }

    /// A space, as a caller reaches it. Its store is made if it does not exist.
    pub async fn space(&self, name: &str, caller: &Caller) -> Result<Space> {
        self.records(self.store_of(name)?).await?.space(name, caller)
    }

    /// A space, as a caller reaches it, or nothing if its store does not exist.
    pub async fn existing_space(&self, name: &str, caller: &Caller) -> Result<Option<Space>> {
        let records = self.existing_records(self.store_of(name)?).await?;
        records.map(|records| records.space(name, caller)).transpose()
    }

    /// The store that agents' entries are in: the one in which the schema declares their space,
    /// [`agents::SPACE`]; else the [default](Data::default_store). An error if there is none.
    pub fn agents_store(&self) -> Result<&str> {
        if let Some(declared) = self.schema.space(agents::SPACE) {
            return Ok(&declared.store);
        }
        self.default_store().ok_or_else(|| {
            let message = format!(
                "agents' entries could be in any of the stores {}: declare the space {} in one of \
                 them, with the key agents:{{user}}:{{namespace}}:{{key}}, or call one \
                 {STORE_DEFAULT_NAME}",
                self.store_names(),
                agents::SPACE
            );
            StoreError::new(ErrorKind::Invalid, message).into()
        })
    }

    /// The store that a registry is in: the one that its settings name; else the
    /// [default](Data::default_store). An error if there is none.
    pub fn registry_store(&self, named: Option<&str>) -> Result<&str> {
        self.named_or_default("registry", named)
    }

    /// The store that a workspace of agreements is in, by the same rule as that of a registry.
    pub fn agreements_store(&self, named: Option<&str>) -> Result<&str> {
        self.named_or_default("workspace", named)
    }

    fn named_or_default(&self, what: &str, named: Option<&str>) -> Result<&str> {
        if let Some(named) = named {
            let found = self.schema.stores.iter().find(|store| store.name == named);
            return found.map(|store| store.name.as_str()).ok_or_else(|| self.unknown_store(named));
        }
        self.default_store().ok_or_else(|| {
            let message = format!(
                "the {what} could be in any of the stores {}: name one in its settings, as in \
                 store = \"{STORE_DEFAULT_NAME}\", or call one {STORE_DEFAULT_NAME}",
                self.store_names()
            );
            StoreError::new(ErrorKind::Invalid, message).into()
        })
    }

    /// The names of the stores, for people.
    fn store_names(&self) -> String {
        self.places.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// The agent data store of a store, which is made if it does not exist. It shares the store's
    /// records, and gathers accesses of its own: whoever opens one drives
    /// [`Agents::keep_flushing`], or [closes](Agents::close) it at the end. Refused for a store that is
    /// not [`Data::agents_store`].
    pub async fn agents(&self, store: &str) -> agents::Result<Agents> {
        let records = self.records(store).await?;
        Agents::open(records, self.agents.clone(), SystemClock)
    }

    /// The same, or nothing if the store does not exist.
    pub async fn existing_agents(&self, store: &str) -> agents::Result<Option<Agents>> {
        let Some(records) = self.existing_records(store).await? else { return Ok(None) };
        Agents::open(records, self.agents.clone(), SystemClock).map(Some)
    }

    /// The store that a space lives in.
    pub fn store_of(&self, space: &str) -> Result<&str> {
        match self.schema.space(space) {
            Some(declared) => Ok(&declared.store),
            None => {
                let known = self.schema.spaces.iter().map(|space| space.name.as_str());
                let known = known.collect::<Vec<_>>().join(", ");
                Err(Error::UnknownSpace { name: space.to_owned(), known })
            }
        }
    }

    fn place(&self, store: &str) -> Result<&Place> {
        self.places.get(store).ok_or_else(|| self.unknown_store(store))
    }

    fn unknown_store(&self, store: &str) -> Error {
        let known = self.store_names();
        let message = format!("the schema declares no store {store:?}; it declares {known}");
        StoreError::new(ErrorKind::Invalid, message).into()
    }

    /// Refuses a schema that does not fit the store, before the store is opened or made.
    fn fit_url(&self, name: &str, url: &str) -> Result<()> {
        open::known_capabilities(url)?.map_or(Ok(()), |known| self.fit(name, &known))
    }

    /// Refuses a schema that does not fit a store that can do this.
    fn fit(&self, name: &str, capabilities: &Capabilities) -> Result<()> {
        let problems = self.schema.check_limits(name, &limits(capabilities)).errors();
        if problems.is_empty() {
            return Ok(());
        }
        let engine = capabilities.engine;
        let told = problems.iter().map(told).collect::<Vec<_>>().join("; ");
        let message = format!("the schema does not fit the {engine} store {name}: {told}");
        Err(StoreError::new(ErrorKind::LimitExceeded, message).into())
    }

    fn records_in(&self, name: &str, store: Store) -> Result<Records> {
        let mut spaces: Vec<_> = self.schema.spaces_of(name).cloned().collect();
        if self.agents_store().is_ok_and(|it| it == name) {
            agents::declare(&mut spaces, name, store.capabilities());
        }
        Records::open(store, spaces, SystemClock)
    }
}

/// What a schema depends on.
fn limits(capabilities: &Capabilities) -> StoreLimits {
    StoreLimits {
        key_bytes_max: capabilities.limits.key_bytes_max,
        value_bytes_max: capabilities.limits.value_bytes_max,
        ttl_min: match capabilities.expiry {
            ExpirySupport::Supported { ttl_min, .. } => Some(ttl_min),
            ExpirySupport::Unsupported => None,
        },
    }
}

fn told(Problem { file, line, message, hint, .. }: &Problem) -> String {
    format!("{file}:{line}: {message} ({hint})")
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stores: Vec<&str> = self.places.keys().map(String::as_str).collect();
        f.debug_struct("Data").field("stores", &stores).finish_non_exhaustive()
    }
}
