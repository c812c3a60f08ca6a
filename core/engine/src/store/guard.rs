//! What a store refuses before an engine sees it.

use std::collections::HashSet;
use std::time::Duration;

use keyward_key::Key;

use super::Store;
use crate::{Commit, Error, Expiry, ExpirySupport, Json, Put, Result, Write};

impl Store {
    pub(super) fn check_key(&self, key: &Key) -> Result<()> {
        let size = key.as_bytes().len();
        if size > self.limits.key_bytes_max {
            return Err(Error::limit(format!(
                "the key {} is {size} bytes long; at most {} fit",
                shortened(key),
                self.limits.key_bytes_max
            )));
        }
        Ok(())
    }

    pub(super) fn check_commit(&self, commit: &Commit) -> Result<()> {
        if commit.checks.is_empty() && commit.writes.is_empty() {
            return Err(Error::invalid("the commit is empty: it checks and writes nothing"));
        }
        self.check_capabilities(commit)?;
        for check in &commit.checks {
            self.check_key(&check.key)?;
        }
        for write in &commit.writes {
            self.check_key(write.key())?;
            if let Write::Put(key, put) = write {
                self.check_put(key, put)?;
            }
        }
        self.check_keys_are_distinct(commit)?;
        let size = commit.size();
        if size > self.limits.commit_bytes_max {
            return Err(Error::limit(format!(
                "the commit is {size} bytes large; at most {} fit",
                self.limits.commit_bytes_max
            )));
        }
        Ok(())
    }

    fn check_capabilities(&self, commit: &Commit) -> Result<()> {
        let capabilities = self.capabilities();
        let engine = capabilities.engine;
        if !capabilities.compare && !commit.checks.is_empty() {
            return Err(Error::unsupported(format!(
                "the {engine} engine cannot check before it writes: the last writer wins"
            )));
        }
        let adds = commit.writes.iter().any(|write| matches!(write, Write::Add(..)));
        if adds && !capabilities.add {
            return Err(Error::unsupported(format!("the {engine} engine cannot add to a number")));
        }
        Ok(())
    }

    fn check_put(&self, key: &Key, put: &Put) -> Result<()> {
        let too_large = |what: &str, size: usize, max: usize| {
            let key = shortened(key);
            Err(Error::limit(format!("the {what} for {key} is {size} bytes; at most {max} fit")))
        };
        if put.value.len() > self.limits.value_bytes_max {
            return too_large("value", put.value.len(), self.limits.value_bytes_max);
        }
        if let Some(metadata) = &put.metadata {
            if !metadata.is_object() {
                return Err(Error::invalid(format!(
                    "the metadata for {} must be a JSON object",
                    shortened(key)
                )));
            }
            if metadata.len() > self.limits.metadata_bytes_max {
                return too_large("metadata", Json::len(metadata), self.limits.metadata_bytes_max);
            }
        }
        match (put.expiry, self.capabilities().expiry) {
            (None, _) | (Some(Expiry::At(_)), ExpirySupport::Supported { .. }) => Ok(()),
            (Some(_), ExpirySupport::Unsupported) => Err(Error::unsupported(format!(
                "entries of the {} engine cannot expire",
                self.capabilities().engine
            ))),
            (Some(Expiry::After(Duration::ZERO)), _) => Err(Error::invalid(
                "a time to live of zero would never be seen; leave it out for an entry that stays",
            )),
            (Some(Expiry::After(ttl)), ExpirySupport::Supported { ttl_min, .. })
                if ttl < ttl_min =>
            {
                Err(Error::unsupported(format!(
                    "entries of the {} engine live at least {ttl_min:?}, not {ttl:?}",
                    self.capabilities().engine
                )))
            }
            (Some(Expiry::After(_)), ExpirySupport::Supported { .. }) => Ok(()),
        }
    }

    fn check_keys_are_distinct(&self, commit: &Commit) -> Result<()> {
        let checked = commit.checks.iter().map(|check| &check.key);
        let written = commit.writes.iter().map(Write::key);
        let keys = match (&commit.checks[..], &commit.writes[..]) {
            // The common cases need no set: small commits, and bulk loads in key order.
            ([], writes) if writes.is_sorted_by(|one, next| one.key() < next.key()) => writes.len(),
            ([_], []) => 1,
            ([check], [write]) => 1 + usize::from(check.key != *write.key()),
            _ => {
                let mut distinct = distinct_keys(written, "written")?;
                distinct.extend(distinct_keys(checked, "checked")?);
                distinct.len()
            }
        };
        if keys > self.limits.commit_keys_max {
            return Err(Error::limit(format!(
                "the commit touches {keys} keys; the {} engine takes at most {} together",
                self.capabilities().engine,
                self.limits.commit_keys_max
            )));
        }
        Ok(())
    }
}

fn distinct_keys<'k>(keys: impl Iterator<Item = &'k Key>, how: &str) -> Result<HashSet<&'k Key>> {
    let mut distinct = HashSet::with_capacity(keys.size_hint().0);
    for key in keys {
        if !distinct.insert(key) {
            let message = format!("the key {} is {how} twice in one commit", shortened(key));
            return Err(Error::invalid(message));
        }
    }
    Ok(distinct)
}

/// A key as it may stand in a message.
fn shortened(key: &Key) -> String {
    const SHOWN: usize = 80;
    let text = key.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
