//! A doctor that knows what Keyward itself keeps in stores.

use keyward_cache::is_cached;
use keyward_engine::{Entry, Scan};
use keyward_key::{Key, KeyRange, Pattern, Prefix};
use keyward_locks::is_lock_catalog;
use keyward_migrate::{Doctor, Result};
use keyward_records::Records;

/// How many registries of one store are known at most.
const REGISTRIES_MAX: usize = 1_000;
/// What agreements keep below the key of a page.
const OF_PAGES: [&str; 3] = ["policy", "issue", "analysis"];
/// Where a registry without a prefix keeps its documents.
const DOCUMENTS: &str = "policy";

/// A doctor for a store that takes none of Keyward's own entries for unknown keys: besides the roots of
/// declared lock trees, it recognizes the catalogs of other lock roots, cached results, what registries
/// keep, and what agreements keep for pages.
pub async fn doctor(
    records: Records,
    lock_roots: impl IntoIterator<Item = Pattern>,
) -> Result<Doctor> {
    let store = records.store();
    let registries = KeyRange::under(&Prefix::from_segments(["system", "registry-of"]));
    let scan = Scan::new(registries).keys_only().limit(REGISTRIES_MAX);
    let occupied = store.scan(&scan).await?.rows;
    let prefixes: Vec<String> = occupied
        .into_iter()
        .filter_map(|row| Some(row.key.segments().nth(2)?.into_owned()))
        .map(|prefix| if prefix.is_empty() { DOCUMENTS.to_owned() } else { prefix })
        .collect();
    let agreements = store.get(&Key::from_stored("system").child("agreements")).await?.is_some();
    let recognize = move |key: &Key, entry: &Entry| {
        let of_a_page = || key.segments().nth(1).is_some_and(|it| OF_PAGES.contains(&&*it));
        is_lock_catalog(entry)
            || is_cached(entry)
            || prefixes.iter().any(|prefix| *prefix == *key.first())
            || agreements && of_a_page()
    };
    Ok(Doctor::new(records).knowing(lock_roots).recognizing(recognize))
}
