//! A doctor that knows what Keyward itself keeps in stores.

use keyward_cache::is_cached;
use keyward_engine::Entry;
use keyward_key::Key;
use keyward_locks::is_lock_catalog;
use keyward_migrate::{Doctor, Result};
use keyward_records::Records;

use crate::rules::WriteRules;

/// A doctor for a store that takes none of Keyward's own entries for unknown keys: the roots of declared
/// lock trees, the catalogs of other lock roots, cached results, and the keys of registries and a workspace.
///
/// Which keys these are is decided by the rules for plain writes, together with what the store says about
/// itself: a key that a plain write must leave to a registry or a workspace is never an unknown one.
pub async fn doctor(records: Records, mut rules: WriteRules) -> Result<Doctor> {
    rules.learn(records.store()).await?;
    let lock_roots = rules.lock_roots().to_vec();
    let recognize = move |key: &Key, entry: &Entry| {
        is_lock_catalog(entry) || is_cached(entry) || rules.system_of(key).is_some()
    };
    Ok(Doctor::new(records).knowing(lock_roots).recognizing(recognize))
}
