//! Which key holds what, besides the entries themselves.

use jiff::Timestamp;
use keyward_key::{Key, Prefix, SegmentType, SegmentValue};
use keyward_schema::Space;

use crate::{Error, Result, declaration};

/// Who accessed an entry, below the entry's own key.
const ACCESS: [&str; 2] = ["system", "access"];
/// What runs did.
const LOG: [&str; 2] = ["system", "agent-log"];
/// What stands under the key of all logs in a store that keeps none: the only thing that ever does.
pub(crate) const NO_LOG: &str = r#"{"kept":false}"#;
/// What stands for the settings of every namespace in a store that is another program's too, and keeps none.
pub(crate) const NO_SETTINGS: &str = r#"{"in_place":true}"#;
/// Which documents lists left out, in a store that is another program's too. Nothing is ever stored there.
const SKIPPED: [&str; 2] = ["system", "agent-skipped"];
/// What holds for a namespace.
const SETTINGS: [&str; 2] = ["system", "agent-settings"];

/// Where it is kept who accessed an entry.
pub(crate) fn access(entry: &Key) -> Key {
    Prefix::from_segments(ACCESS).join(entry)
}

/// How long that key is.
pub(crate) fn access_bytes(entry: &Key) -> usize {
    let before: usize = ACCESS.iter().map(|segment| segment.len() + 1).sum();
    before + entry.as_bytes().len()
}

/// Where the log of a run is.
pub(crate) fn log(user: &str, run: &str) -> Prefix {
    Prefix::from_segments(LOG).child(user).child(run)
}

/// Where a store says that it keeps no logs.
pub(crate) fn no_log() -> Option<Key> {
    Prefix::from_segments(LOG).to_key()
}

/// Where the logs of a user's runs are.
pub(crate) fn logs(user: &str) -> Prefix {
    Prefix::from_segments(LOG).child(user)
}

/// Where a line of a log is: in the order of time, then of those who wrote it.
pub(crate) fn line(user: &str, run: &str, at: Timestamp, handle: &str, number: u64) -> Result<Key> {
    let at = SegmentType::Time.write(&SegmentValue::Time(at)).map_err(Error::Invalid)?;
    let place = log(user, run).child(&at).child(handle).child(&format!("{number:020}"));
    place.to_key().ok_or_else(|| Error::Invalid("a line without a run".to_owned()))
}

/// Where the settings of a namespace are.
pub(crate) fn settings(user: &str, namespace: &str) -> Result<Key> {
    let place = Prefix::from_segments(SETTINGS).child(user).child(namespace).to_key();
    place.ok_or_else(|| Error::Invalid("settings of no namespace".to_owned()))
}

/// Where a store tells which documents lists of a user left out, in one namespace or in all.
pub(crate) fn skipped(user: &str, namespace: Option<&str>) -> Result<Key> {
    let of_user = Prefix::from_segments(SKIPPED).child(user);
    let place = namespace.map_or(of_user.clone(), |namespace| of_user.child(namespace)).to_key();
    place.ok_or_else(|| Error::Invalid("documents of no user".to_owned()))
}

/// Below what everything lies that is kept about a user's entries.
pub(crate) fn of_user(space: &Space, user: &str) -> Result<Vec<Prefix>> {
    let entries = declaration::prefix(space, user, None)?;
    let access = entries.to_key().map(|entries| Prefix::from(&access(&entries)));
    let own = Prefix::from_segments(SETTINGS).child(user);
    Ok(access.into_iter().chain([logs(user), own]).collect())
}
