//! What changes in a store.

use futures_util::{Stream, StreamExt};
use keyward::{Event, KeyRange, Prefix, Revision};

use super::reach::{admit_prefix, is_shown};
use crate::auth::Identity;
use crate::problem::{Problem, Result};
use crate::stores::Served;

/// What changes below a prefix, after a revision or from now on.
pub(crate) fn watch(
    who: &Identity,
    served: &Served,
    prefix: &Prefix,
    since: Option<Revision>,
) -> Result<impl Stream<Item = Result<Event>> + Send + use<>> {
    admit_prefix(who, served, prefix)?;
    let events = served.feed.watch(KeyRange::under(prefix), since);
    Ok(events.filter_map(|event| async {
        match event.map_err(Problem::from) {
            Ok(Event::Changed { revision, changes }) => {
                let changes: Vec<_> =
                    changes.into_iter().filter(|change| is_shown(&change.key)).collect();
                match changes.is_empty() {
                    true => None,
                    false => Some(Ok(Event::Changed { revision, changes })),
                }
            }
            other => Some(other),
        }
    }))
}
