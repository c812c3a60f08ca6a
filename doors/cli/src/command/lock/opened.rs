//! The locks of the store that a root lives in.

use keyward::agreements::{is_workspace, lock_tree};
use keyward::locks::{Locks, Options, Root, Who};
use keyward::schema::LockTree;
use keyward::{Data, Durability, ErrorKind, Key, Store, SystemClock};

use crate::args::Target;
use crate::config::Agreements;
use crate::failure::Result;
use crate::guard::Guard;
use crate::output::{Output, note};
use crate::store_choice::{self, Choice};

/// The store of some locks, and the trees that they are named by.
struct LockStore {
    url: String,
    trees: Vec<LockTree>,
    guard: Guard,
    /// Whether the schema says which store it is.
    is_declared: bool,
}

impl LockStore {
    /// The store of the locks below a root: where the schema says, else the one of other commands. Without
    /// a root, the latter.
    async fn of(target: &Target, root: Option<&Key>) -> Result<Self> {
        if let Some(server) = target.server()? {
            let trees = match target.served_schema().await? {
                Some(schema) => schema.locks,
                None => Data::load(&target.schema_file()?)?.schema().locks.clone(),
            };
            let tree = root.and_then(|root| trees.iter().find(|tree| tree.has_root(root)));
            let declared = tree.map(|tree| tree.store.clone());
            if let (Some(root), Some(store), Some(named)) = (root, &declared, server.store())
                && store != named
            {
                return Err(store_choice::left_out(store, &format!("the locks of {root}")));
            }
            let url = match &declared {
                Some(store) => server.store_url(store)?,
                None => server.url()?,
            };
            let guard = Guard::of_server(&url).await?;
            return Ok(Self { url, trees, guard, is_declared: declared.is_some() });
        }
        let choice = Choice::of(target)?;
        let trees = choice.data.schema().locks.clone();
        let declared = match root {
            Some(root) => choice.lock_store(root)?.map(str::to_owned),
            None => None,
        };
        let store = match &declared {
            Some(store) => store.clone(),
            None => choice.store()?.to_owned(),
        };
        let guard = Guard::of_store(&choice, &store, target).await?;
        let is_declared = declared.is_some();
        Ok(Self { url: choice.data.url(&store)?, trees, guard, is_declared })
    }
}

/// The locks below a key. The store is made if it does not exist.
pub async fn root(target: &Target, key: &str, output: &Output) -> Result<Root> {
    let key = crate::command::key(key)?;
    let LockStore { url, trees, mut guard, .. } = LockStore::of(target, Some(&key)).await?;
    let store = keyward::open(&url).await?;
    // What the store says of itself counts, too. A root that was locked before is one, whosever it is.
    guard.over(store.clone()).await?;
    if store.get(&Locks::is_no_root(&key).key).await?.is_none() {
        guard.admit_root(&key)?;
    }
    if store.capabilities().durability == Durability::Relaxed && !output.json() {
        note("warning: a power loss may undo the last commits of this store, locks among them");
    }
    Ok(locks(target, &url, store, trees).await?.root(key)?)
}

/// The locks below a key, of a store that must be there if the schema says which it is.
pub async fn existing_root(target: &Target, key: &str, output: &Output) -> Result<Root> {
    let key = crate::command::key(key)?;
    let LockStore { url, trees, is_declared, .. } = LockStore::of(target, Some(&key)).await?;
    let store = match is_declared {
        true => crate::args::open_existing(&url).await?,
        false => target.open_to_read(output).await?,
    };
    Ok(locks(target, &url, store, trees).await?.root(key)?)
}

/// All locks of the store that other commands use.
pub async fn all(target: &Target, output: &Output) -> Result<Locks> {
    let LockStore { url, trees, .. } = LockStore::of(target, None).await?;
    locks(target, &url, target.open_to_read(output).await?, trees).await
}

/// The locks of a store that was opened by a URL. The tree of its workspace, if it has one, comes before
/// those of the schema.
async fn locks(
    target: &Target,
    url: &str,
    store: Store,
    mut trees: Vec<LockTree>,
) -> Result<Locks> {
    if is_declared_workspace(target, url).await? || says_workspace(&store).await? {
        trees.insert(0, lock_tree(url)?);
    }
    let options = Options { who: who(), trees, ..Options::default() };
    Ok(Locks::new(store, SystemClock, options)?)
}

/// Whether the config file declares a workspace in the store with this URL. A store that was named for
/// this command, and those of a server, say it themselves.
async fn is_declared_workspace(target: &Target, url: &str) -> Result<bool> {
    if target.server()?.is_some() || target.store_is_asked_for() {
        return Ok(false);
    }
    let Agreements { declared, .. } = target.agreements()?;
    for (name, settings) in &declared {
        let named = settings.store.as_deref();
        let chosen = store_choice::of_system(target, named, Data::agreements_store).await;
        let (data, place) =
            chosen.map_err(|failure| failure.at(format_args!("agreements.{name}")))?;
        if data.url(&place)? == url {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a store says that it has a workspace. Who may not see that may not lock anything there either.
async fn says_workspace(store: &Store) -> Result<bool> {
    match is_workspace(store).await {
        Err(keyward::agreements::Error::Store(error)) if error.kind() == ErrorKind::Forbidden => {
            Ok(false)
        }
        said => Ok(said?),
    }
}

/// Whoever is at the keyboard, on this machine.
pub fn who() -> Who {
    let name = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Who::process(name.unwrap_or_else(|| "keyward".to_owned()), host)
}
