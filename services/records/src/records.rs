//! The records of one store.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::HEXLOWER;
use keyward_engine::{
    Clock, Commit, Error as StoreError, ErrorKind, Expect, ExpirySupport, Json, Put, Store, Tier,
};
use keyward_key::Key;
use keyward_schema::{IndexKind, Space as Declaration};

use crate::access::Access;
use crate::catalog::{Catalog, CatalogContent};
use crate::cursor::{Question, Secret};
use crate::space::Space;
use crate::{Caller, Error, Result};

/// The records of one store: its spaces, as callers reach them. Cheap to clone.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use keyward_engine::{Code, Coded, Json, Store, SystemClock};
/// use keyward_key::Bindings;
/// use keyward_records::{Caller, Draft, Records};
///
/// let schema = keyward_schema::Schema::parse(
///     "[stores.app]\n[spaces.notes]\nkey = 'user:{user}:notes:{note}'\nownership = 'user'\n",
///     "schema.toml",
/// )?;
/// let store = Store::new(keyward_memory::Memory::new());
/// let records = Records::open(store, schema.spaces, SystemClock)?;
///
/// let notes = records.space("notes", &Caller::user("ada"))?;
/// let key = notes.key(Bindings::new().with("note", "n1"))?;
/// assert_eq!(key.to_string(), "user:ada:notes:n1");
/// notes.put(&key, Draft::new(Json::parse(r#"{"title":"hi"}"#)?)).await?;
///
/// let bob = records.space("notes", &Caller::user("bob"))?;
/// assert_eq!(bob.get(&key).await.unwrap_err().code(), Code::Forbidden);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Records {
    pub(crate) shared: Arc<Shared>,
}

/// What all spaces of a store have in common.
pub(crate) struct Shared {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub catalog: Catalog,
    spaces: BTreeMap<String, Declaration>,
    /// Spaces whose declared indexes are known to be in the catalog.
    ensured: Mutex<HashSet<String>>,
    secret: Mutex<Option<Secret>>,
    /// How many pauses were made.
    turns: AtomicU64,
}

impl Records {
    /// The records of these spaces, which all live in `store`. What the store's engine cannot do for
    /// them is refused here.
    ///
    /// A change that meets others waits a moment before it is tried again: the runtime must have its
    /// timers enabled.
    pub fn open(
        store: Store,
        spaces: impl IntoIterator<Item = Declaration>,
        clock: impl Clock,
    ) -> Result<Self> {
        let spaces: BTreeMap<String, Declaration> =
            spaces.into_iter().map(|space| (space.name.clone(), space)).collect();
        for space in spaces.values() {
            check_capabilities(&store, space)?;
        }
        let shared = Shared {
            store,
            clock: Arc::new(clock),
            catalog: Catalog::new()?,
            spaces,
            ensured: Mutex::default(),
            secret: Mutex::default(),
            turns: AtomicU64::new(0),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// A space, as a caller reaches it.
    pub fn space(&self, name: &str, caller: &Caller) -> Result<Space> {
        let Some(space) = self.shared.spaces.get(name) else {
            let known: Vec<&str> = self.shared.spaces.keys().map(String::as_str).collect();
            return Err(Error::UnknownSpace { name: name.to_owned(), known: known.join(", ") });
        };
        let access = Access::new(space.clone(), caller.clone())?;
        Ok(Space { shared: self.shared.clone(), access, rider: None })
    }

    /// The declarations, by name.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.shared.declarations()
    }

    /// The store below. It knows no callers: whatever is done with it is done to everybody.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// The beginning of a question that a caller asks this store in pages. Its cursors are good in
    /// every process that uses the store.
    pub async fn question(&self, caller: &Caller) -> Result<Question> {
        Ok(Question::new(&self.shared.secret().await?, caller))
    }

    /// The clock that was given.
    pub fn clock(&self) -> &dyn Clock {
        &*self.shared.clock
    }

    /// Which indexes the store has, read now.
    pub async fn catalog(&self) -> Result<CatalogContent> {
        let shared = &self.shared;
        let snapshot = shared.catalog.read(&shared.store, &*shared.clock).await?;
        Ok(snapshot.content.clone())
    }

    /// Changes which indexes the store has. From the moment this returns, every writer goes by it;
    /// on engines without commits of several keys, after
    /// [`CATALOG_AGE_MAX`](crate::CATALOG_AGE_MAX).
    pub async fn change_catalog(
        &self,
        change: impl FnMut(&mut CatalogContent) -> Result<()>,
    ) -> Result<CatalogContent> {
        let shared = &self.shared;
        let snapshot = shared.catalog.update(&shared.store, &*shared.clock, change).await?;
        Ok(snapshot.content.clone())
    }
}

impl Shared {
    /// All spaces of the store.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.spaces.values()
    }

    pub fn is_ensured(&self, space: &str) -> bool {
        self.ensured.lock().unwrap_or_else(PoisonError::into_inner).contains(space)
    }

    pub fn set_ensured(&self, space: &str) {
        self.ensured.lock().unwrap_or_else(PoisonError::into_inner).insert(space.to_owned());
    }

    /// A number that nobody else here gets.
    pub fn turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// What cursors are made with: one secret for everybody who uses the store, made when it is
    /// first needed.
    pub async fn secret(&self) -> Result<Secret> {
        if let Some(secret) = *self.secret.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(secret);
        }
        let secret = self.read_secret().await?;
        *self.secret.lock().unwrap_or_else(PoisonError::into_inner) = Some(secret);
        Ok(secret)
    }

    async fn read_secret(&self) -> Result<Secret> {
        let key = Key::from_segments(["system", "cursor-secret"])
            .map_err(|error| Error::Damaged(error.to_string()))?;
        if let Some(entry) = self.store.get(&key).await? {
            return stored_secret(&key, &entry.value);
        }
        let mut fresh = Secret::default();
        getrandom::fill(&mut fresh).map_err(|error| {
            StoreError::new(ErrorKind::Internal, format!("there is no randomness: {error}"))
        })?;
        let text = Json::from_value(&HEXLOWER.encode(&fresh));
        let put = Put::new(text.map_err(|error| Error::Damaged(error.to_string()))?);
        let commit = Commit::new().put(key.clone(), put);
        let compared = self.store.capabilities().tier() != Tier::Advisory;
        let commit = if compared { commit.check(key.clone(), Expect::Absent) } else { commit };
        if self.store.commit(commit).await?.is_applied() {
            return Ok(fresh);
        }
        let entry = self.store.get(&key).await?;
        let value = entry.map(|entry| entry.value).unwrap_or_else(crate::index::null);
        stored_secret(&key, &value)
    }
}

fn stored_secret(key: &Key, value: &Json) -> Result<Secret> {
    serde_json::from_slice::<String>(value.as_bytes())
        .ok()
        .and_then(|text| HEXLOWER.decode(text.as_bytes()).ok())
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| Error::Damaged(format!("{key} holds no secret")))
}

/// Refuses what the engine cannot do for a space.
fn check_capabilities(store: &Store, space: &Declaration) -> Result<()> {
    let capabilities = store.capabilities();
    let refuse = |what: String| {
        let message =
            format!("the space {}: the {} engine {what}", space.name, capabilities.engine);
        Err(StoreError::new(ErrorKind::Unsupported, message).into())
    };
    let tier = capabilities.tier();
    if space.history.is_some() && tier != Tier::Atomic {
        return refuse(
            "cannot keep history: it cannot write a record and its history together".into(),
        );
    }
    let unique = space
        .indexes
        .iter()
        .find(|index| matches!(index.kind, IndexKind::Values { unique: true, .. }));
    if let (Some(index), Tier::Advisory) = (unique, tier) {
        return refuse(format!(
            "cannot keep {} unique, since the last writer wins there; name a coordinator for the store",
            index.name
        ));
    }
    if space.lifetime.is_some() && capabilities.expiry == ExpirySupport::Unsupported {
        return refuse("has no entries that expire".into());
    }
    Ok(())
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spaces: Vec<&str> = self.shared.spaces.keys().map(String::as_str).collect();
        f.debug_struct("Records").field("spaces", &spaces).finish()
    }
}
