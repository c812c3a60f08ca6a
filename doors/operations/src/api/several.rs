//! Reads of several keys in one request: each key is read once, and what they hold together is bounded.

use std::collections::HashMap;

use keyward::{Code, Entry, Json, Key, Store};

use crate::identity::Identity;
use crate::problem::{Problem, Result};
use crate::services::Services;

/// How many bytes the entries of one request have at most together.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Reads of more keys wait their turn with other expensive reads.
const CHEAP_KEYS_MAX: usize = 32;

/// The entries of some keys at one moment, in the order of the keys.
pub async fn read(
    who: &Identity,
    services: &Services,
    store: &Store,
    keys: &[Key],
) -> Result<Vec<Option<Entry>>> {
    let mut distinct = keys.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let read = if distinct.len() > CHEAP_KEYS_MAX {
        let (own, asked) = (store.clone(), distinct.clone());
        services.reads().run(who, store, async move { Ok(own.get_many(&asked).await?) }).await?
    } else {
        store.get_many(&distinct).await?
    };
    let found: HashMap<&Key, Entry> =
        distinct.iter().zip(read).filter_map(|(key, entry)| Some((key, entry?))).collect();
    let entries: Vec<Option<Entry>> = keys.iter().map(|key| found.get(key).cloned()).collect();
    check(entries.iter().flatten().map(size))?;
    Ok(entries)
}

fn size(entry: &Entry) -> usize {
    entry.value.len() + entry.metadata.as_ref().map_or(0, Json::len)
}

/// Refuses an answer that would be too large.
pub fn check(sizes: impl Iterator<Item = usize>) -> Result<()> {
    match sizes.sum::<usize>() {
        0..=BYTES_MAX => Ok(()),
        _ => Err(Problem::new(
            Code::LimitExceeded,
            format!("these keys hold more than {BYTES_MAX} bytes together"),
        )
        .hint("Ask for fewer of them at a time.")),
    }
}

/// Refuses keys of which one is named twice.
pub fn refuse_twice<K: Ord + std::fmt::Display>(keys: &[K]) -> Result<()> {
    let mut sorted: Vec<&K> = keys.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Problem::invalid(format!("the key {} is named twice", pair[0]))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_has_at_most_so_many_bytes() {
        assert!(check([BYTES_MAX - 1, 1].into_iter()).is_ok());
        let refused = check([BYTES_MAX, 1].into_iter()).unwrap_err();
        assert_eq!(refused.code(), Code::LimitExceeded);
    }

    #[test]
    fn a_key_that_is_named_twice_is_found_wherever_it_stands() {
        assert!(refuse_twice::<String>(&[]).is_ok());
        assert!(refuse_twice(&["b", "a", "c"]).is_ok());
        let refused = refuse_twice(&["b", "a", "c", "b"]).unwrap_err();
        assert!(refused.detail().contains("the key b is named twice"), "{}", refused.detail());
    }
}
