//! What of a store one caller sees in listings, scans and watches.

use std::sync::Arc;

use keyward::records::Space;
use keyward::schema::Space as Declaration;
use keyward::{Key, KeyRange, Prefix, Scan, Store, Want};

use crate::identity::Identity;
use crate::problem::Result;
use crate::stores::Served;

/// How many keys are read at a time to find one that is seen.
const LOOKED_AT_ONCE: usize = 100;
/// How many keys are read in all to find one that is seen.
const LOOKED_MAX: usize = 1_000;

/// The keys that a caller sees: none of Keyward's own, and of declared spaces what they may read there.
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sight(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Keys that are not seen, with all below them.
    closed: Vec<Key>,
    /// The spaces of which the caller may not read everything that lies below their own or the shared
    /// keys.
    restricted: Vec<Space>,
}

impl Sight {
    /// What somebody sees, but for some keys and all below them.
    pub fn new(closed: Vec<Key>, who: &Identity, served: &Served) -> Result<Self> {
        let mut restricted = Vec::new();
        if !who.caller().is_operator() {
            for declaration in served.records.declarations().filter(|it| restricts(who, it)) {
                restricted.push(served.records.space(&declaration.name, who.caller())?);
            }
        }
        Ok(Self(Arc::new(Inner { closed, restricted })))
    }

    /// The keys that are not seen, with all below them.
    pub fn closed(&self) -> &[Key] {
        &self.0.closed
    }

    /// The key with all below it that is not seen, if this one lies there.
    pub fn closed_over(&self, key: &Key) -> Option<&Key> {
        self.0.closed.iter().find(|root| KeyRange::subtree(root).contains(key))
    }

    /// Whether a key is seen.
    pub fn shows(&self, key: &Key) -> bool {
        let mut spaces = self.0.restricted.iter();
        let space = spaces.find(|space| space.declaration().key.matches(key));
        self.closed_over(key).is_none() && space.is_none_or(|space| space.admit_read(key).is_ok())
    }

    /// Whether something below a prefix is seen. Where a thousand keys in a row are not, the rest is not
    /// looked at.
    pub async fn shows_below(&self, store: &Store, prefix: &Prefix) -> Result<bool> {
        if prefix.to_key().is_some_and(|key| self.closed_over(&key).is_some()) {
            return Ok(false);
        }
        if self.0.restricted.is_empty() {
            return Ok(true);
        }
        let mut scan = Scan::new(KeyRange::under(prefix)).limit(LOOKED_AT_ONCE);
        scan.want = Want::Keys;
        for _ in 0..LOOKED_MAX / LOOKED_AT_ONCE {
            let page = store.scan(&scan).await?;
            if page.rows.iter().any(|row| self.shows(&row.key)) {
                return Ok(true);
            }
            match page.next {
                Some(next) => scan.after = Some(next),
                None => break,
            }
        }
        Ok(false)
    }
}

/// Whether a space keeps something from a caller that lies below their own keys or the shared ones.
fn restricts(who: &Identity, declaration: &Declaration) -> bool {
    let roles = &declaration.read_roles;
    let lacks_role = !roles.is_empty() && !roles.iter().any(|role| who.caller().has_role(role));
    // In keys like user:{owner}:… the owner rule lets through what is the caller's own anyway.
    let owner_is_second = declaration.key.as_str().starts_with("user:{");
    lacks_role || declaration.ownership.owner().is_some() && !owner_is_second
}
