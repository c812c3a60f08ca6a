//! The locks of the store that a root lives in.

use keyward::agreements::{is_workspace, lock_tree};
use keyward::locks::{Locks, Options, Root, Who};
use keyward::schema::{LockTree, Schema};
use keyward::{Data, Durability, ErrorKind, Key, Store, SystemClock};

use crate::args::Target;
use crate::config::Agreements;
use crate::failure::Result;
use crate::guard::Guard;
use crate::output::{Output, note};
use crate::place;

/// The locks below a key. The store is made if it does not exist.
pub async fn root(target: &Target, key: &str, output: &Output) -> Result<Root> {
    let key = crate::command::key(key)?;
    let trees = trees(target).await?;
    let url = url_of(target, &trees, &key).await?;
    let mut guard = Guard::new(target, false).await?;
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

/// The locks below a key, of a store that must be there.
pub async fn existing_root(target: &Target, key: &str, output: &Output) -> Result<Root> {
    let key = crate::command::key(key)?;
    let trees = trees(target).await?;
    let (url, store) = match store_of(target, &trees, &key).await? {
        Some(url) => {
            let store = crate::args::open_existing(&url).await?;
            (url, store)
        }
        None => (target.url()?, target.open_to_read(output).await?),
    };
    Ok(locks(target, &url, store, trees).await?.root(key)?)
}

/// All locks of the store that the target names.
pub async fn all(target: &Target, output: &Output) -> Result<Locks> {
    let trees = trees(target).await?;
    locks(target, &target.url()?, target.open_to_read(output).await?, trees).await
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
        let chosen = place::find(target, settings.store.as_deref(), Data::agreements_store).await;
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

/// The lock trees of the schema, if there is one.
async fn trees(target: &Target) -> Result<Vec<LockTree>> {
    if let Some(schema) = target.served_schema().await? {
        return Ok(schema.locks);
    }
    match target.schema_file_if_any()? {
        Some(file) => Ok(Schema::load(&file)?.locks),
        None => Ok(Vec::new()),
    }
}

/// The store of a root's locks: where the schema says, else the one that the target names.
async fn url_of(target: &Target, trees: &[LockTree], root: &Key) -> Result<String> {
    match store_of(target, trees, root).await? {
        Some(url) => Ok(url),
        None => target.url(),
    }
}

/// Where the schema says that a root's locks live, unless the command line names the store.
async fn store_of(target: &Target, trees: &[LockTree], root: &Key) -> Result<Option<String>> {
    let tree = trees.iter().find(|tree| tree.has_root(root));
    match tree {
        Some(tree) if !target.store_is_asked_for() => {
            Ok(Some(target.data().await?.url(&tree.store)?))
        }
        _ => Ok(None),
    }
}

/// Whoever is at the keyboard, on this machine.
pub fn who() -> Who {
    let name = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Who::process(name.unwrap_or_else(|| "keyward".to_owned()), host)
}
