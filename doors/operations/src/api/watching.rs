//! What changes in a store.

use futures_util::{Stream, StreamExt};
use keyward::{Key, KeyRange, Prefix, Revision};

use crate::authorize::admit_prefix;
use crate::feed::{Quiet, Told};
use crate::identity::Identity;
use crate::problem::{Problem, Result};
use crate::stores::Served;

/// What changes below a prefix, after a revision or from now on.
pub fn watch(
    who: &Identity,
    served: &Served,
    prefix: &Prefix,
    since: Option<Revision>,
) -> Result<impl Stream<Item = Result<Told>> + Send + use<>> {
    let sight = admit_prefix(who, served, prefix)?;
    let shown = move |key: &Key| sight.shows(key);
    let events = served.feed.watch(KeyRange::under(prefix), since, Quiet::Sometimes, shown);
    Ok(events.map(|event| event.map_err(Problem::from)))
}
