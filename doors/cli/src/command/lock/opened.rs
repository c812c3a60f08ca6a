//! The locks of the store that a root lives in.

use keyward::locks::{Locks, Options, Root, Who};
use keyward::schema::{LockTree, Schema};
use keyward::{Durability, Key, Store, SystemClock};

use crate::args::Target;
use crate::failure::Result;
use crate::output::{Output, note};

/// The locks below a key. The store is made if it does not exist.
pub async fn root(target: &Target, key: &str, output: &Output) -> Result<Root> {
    let key = crate::command::key(key)?;
    let trees = trees(target).await?;
    let store = match store_of(target, &trees, &key).await? {
        Some(url) => keyward::open(&url).await?,
        None => target.open().await?,
    };
    if store.capabilities().durability == Durability::Relaxed && !output.json() {
        note("warning: a power loss may undo the last commits of this store, locks among them");
    }
    Ok(locks(store, trees)?.root(key)?)
}

/// The locks below a key, of a store that must be there.
pub async fn existing_root(target: &Target, key: &str, output: &Output) -> Result<Root> {
    let key = crate::command::key(key)?;
    let trees = trees(target).await?;
    let store = match store_of(target, &trees, &key).await? {
        Some(url) => crate::args::open_existing(&url).await?,
        None => target.open_to_read(output).await?,
    };
    Ok(locks(store, trees)?.root(key)?)
}

/// All locks of the store that the target names.
pub async fn all(target: &Target, output: &Output) -> Result<Locks> {
    let trees = trees(target).await?;
    locks(target.open_to_read(output).await?, trees)
}

fn locks(store: Store, trees: Vec<LockTree>) -> Result<Locks> {
    let options = Options { who: who(), trees, ..Options::default() };
    Ok(Locks::new(store, SystemClock, options)?)
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

/// Where the schema says that a root's locks live, unless the command line names the store.
async fn store_of(target: &Target, trees: &[LockTree], root: &Key) -> Result<Option<String>> {
    let tree = trees.iter().find(|tree| tree.root.matches(root));
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
