//! Telling clients which resources changed, from the feed of the store.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use keyward::{Bindings, Code, Event, Key, KeyRange};
use tokio::task::AbortHandle;

use super::resources::reached;
use super::uri::Address;
use crate::api::agents::{self, Behalf};
use crate::api::registries;
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::feed::{Quiet, Told};
use crate::problem::{Problem, Result};
use keyward_operations::authorize::is_shown;

/// How many resources one client watches.
pub(super) const WATCHED_MAX: usize = 64;

/// Whether a resource can be subscribed to, as far as its address says.
pub(super) fn can_be_watched(uri: &str) -> bool {
    !matches!(Address::parse(uri), None | Some(Address::Schema | Address::Space { .. }))
}

/// A sign each time a resource changes, for somebody who may read it. Ends when it cannot be watched
/// any longer.
pub(super) fn changes(
    app: &App,
    who: &Identity,
    uri: &str,
) -> Result<impl Stream<Item = ()> + Send + use<>> {
    let unwatched = || {
        Problem::not_found("there is no resource of this address that can be subscribed to")
            .hint("Subscribe to the records of a space, or to one of them.")
    };
    let address = Address::parse(uri).ok_or_else(unwatched)?;
    let (feed, range, pattern) = match &address {
        Address::Records { store, space } => {
            let reached = reached(app, who, store, space)?;
            let pattern = reached.space.declaration().key.clone();
            (&reached.served.feed, reached.space.range(Bindings::new())?, Some(pattern))
        }
        Address::Record { store, space, key } => {
            let reached = reached(app, who, store, space)?;
            // Only below what the caller may list.
            let within = reached.space.range(Bindings::new())?.contains(key);
            if !within || !reached.space.declaration().key.matches(key) {
                return Err(unwatched());
            }
            (&reached.served.feed, KeyRange::exactly(key), None)
        }
        Address::Namespace { namespace } => {
            let reached = agents::reach(who, app, &Behalf::default(), namespace)?;
            (&app.store(reached.store_name())?.feed, reached.range(None)?, None)
        }
        Address::Entry { namespace, key } => {
            let reached = agents::reach(who, app, &Behalf::default(), namespace)?;
            (&app.store(reached.store_name())?.feed, reached.range(Some(key))?, None)
        }
        Address::Policy { registry, policy } => {
            let kept = registries::reach(who, app, registry, Need::Read)?;
            let entry = KeyRange::exactly(&kept.key("policy", policy)?);
            (&app.store(kept.store())?.feed, entry, None)
        }
        Address::Schema | Address::Space { .. } => return Err(unwatched()),
    };
    let events = feed.watch(range, None, Quiet::Sometimes, is_shown);
    Ok(events.filter_map(move |event| {
        // Between the records of a space, other keys may lie.
        let is_of_it = |key: &Key| pattern.as_ref().is_none_or(|pattern| pattern.matches(key));
        let changed = match event.as_ref().map(Told::event) {
            Ok(Event::Changed { changes, .. }) => {
                changes.iter().any(|change| is_of_it(&change.key))
            }
            // What was missed may have been a change.
            Ok(Event::TooOld { .. }) => true,
            Ok(Event::Reached(_)) | Err(_) => false,
        };
        std::future::ready(changed.then_some(()))
    }))
}

/// The addresses of the resources that change, of several.
pub(super) fn changes_of(app: &App, who: &Identity, uris: &[String]) -> BoxStream<'static, String> {
    let each = uris.iter().take(WATCHED_MAX).filter_map(|uri| {
        // What the caller does not reach never changes for them.
        let changes = changes(app, who, uri).ok()?;
        let uri = uri.clone();
        Some(changes.map(move |()| uri.clone()).boxed())
    });
    stream::select_all(each).boxed()
}

/// What a session before the revision 2026-07-28 is subscribed to.
#[derive(Debug, Default)]
pub(super) struct Subscribed(Mutex<HashMap<String, AbortHandle>>);

impl Subscribed {
    /// Remembers what tells of a resource. Refused, and stopped, where there are too many.
    pub fn add(&self, uri: &str, telling: AbortHandle) -> Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, telling| !telling.is_finished());
        if all.len() >= WATCHED_MAX && !all.contains_key(uri) {
            telling.abort();
            let detail = format!("a client is subscribed to at most {WATCHED_MAX} resources");
            return Err(Problem::new(Code::LimitExceeded, detail).hint("Unsubscribe from some."));
        }
        if let Some(before) = all.insert(uri.to_owned(), telling) {
            before.abort();
        }
        Ok(())
    }

    pub fn remove(&self, uri: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(telling) = all.remove(uri) {
            telling.abort();
        }
    }
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let all = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        all.values().for_each(AbortHandle::abort);
    }
}
