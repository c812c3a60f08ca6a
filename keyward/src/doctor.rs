//! A doctor that knows what Keyward itself keeps in stores.

use keyward_cache::is_cached;
use keyward_engine::{Entry, Json, Store, SystemClock};
use keyward_key::Key;
use keyward_locks::is_lock_catalog;
use keyward_migrate::{Doctor, Probed, Result, Scratch, probe_on};
use keyward_records::Records;
use keyward_records::field::members;

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

/// Tries whether a store's database keeps what the engine promises, on scratch keys that are removed again: below
/// `system:probe`, with a coordinator also one below `keyward-probe` that goes to the value store, or in a store with `layout=document`, which takes entries only, as entries of the user
/// `keyward-probe`. Lists are not tried there: their index may be late.
pub async fn probe(store: &Store, has_document_layout: bool) -> Result<Probed> {
    let scratch = match has_document_layout {
        false => Scratch::default(),
        true => Scratch {
            below: &["agents", "keyward-probe"],
            write: entry_of,
            read: number_in,
            scans: false,
        },
    };
    probe_on(store, &SystemClock, scratch).await
}

/// An agent entry whose value is a number.
fn entry_of(number: i64) -> Json {
    const MOMENT: &str = "2026-01-01T00:00:00Z";
    let text = format!(r#"{{"createdAt":"{MOMENT}","updatedAt":"{MOMENT}","value":{number}}}"#);
    Json::from_stored(text)
}

fn number_in(entry: &Json) -> Option<i64> {
    let members = members(entry.as_str())?;
    let (_, value) = members.iter().find(|(name, _)| name == "value")?;
    value.parse().ok()
}
