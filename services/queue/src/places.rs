//! Which key holds what.

use keyward_key::{Key, KeyRange, Prefix};

use crate::moment::Moment;
use crate::row::Layout;
use crate::{Error, Result};

/// The keys that a queue has in its store.
///
/// | what | default |
/// |---|---|
/// | a message | `queue:{queue}:{id}` |
/// | a dead letter | `dead-letter:{queue}:{id}` |
/// | a job | `job:{id}` |
/// | in line, by time of enqueuing | `system:queue:{queue}:ready:{time}:{id}` |
/// | to be looked at later, by that time | `system:queue:{queue}:due:{time}:{id}` |
/// | the lease of a claimed message | `system:queue:{queue}:claim:{id}` |
/// | there while the queue is paused | `system:queue:{queue}:paused` |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    rows: Key,
    dead_letters: Key,
    ready: Key,
    due: Key,
    claims: Key,
    paused: Key,
    layout: Layout,
}

/// One entry of a queue's index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub key: Key,
    pub at: Moment,
    pub id: String,
}

impl Places {
    /// The most bytes that the name of a queue has.
    pub const NAME_BYTES_MAX: usize = 200;
    /// The most bytes that the id of a message has.
    pub const ID_BYTES_MAX: usize = 500;

    /// Where a queue is when nothing else is said.
    pub fn of(queue: &str) -> Result<Self> {
        if queue.is_empty() || queue.len() > Self::NAME_BYTES_MAX {
            return Err(Error::BadMessage(format!(
                "the name of a queue has 1 to {} bytes, not {}",
                Self::NAME_BYTES_MAX,
                queue.len()
            )));
        }
        let key = |segments: &[&str]| {
            Key::from_segments(segments).map_err(|error| Error::BadMessage(error.to_string()))
        };
        let [rows, dead, control] =
            [&["queue", queue][..], &["dead-letter", queue], &["system", "queue", queue]].map(key);
        Ok(Self::new(rows?, dead?, &control?))
    }

    /// Rows as children of one key, dead letters as children of another, and the index, leases and
    /// the pause below a third. No two queues of a store may share one of them.
    pub fn new(rows: Key, dead_letters: Key, control: &Key) -> Self {
        Self {
            rows,
            dead_letters,
            ready: control.child("ready"),
            due: control.child("due"),
            claims: control.child("claim"),
            paused: control.child("paused"),
            layout: Layout::Nested,
        }
    }

    /// The same with payloads spread out: payloads are objects, and their members stand in the row
    /// itself, beside `retryCount` and the other members of a row, whose names they cannot have.
    #[must_use]
    pub fn spread(mut self) -> Self {
        self.layout = Layout::Spread;
        self
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn row(&self, id: &str) -> Key {
        self.rows.child(id)
    }

    pub(crate) fn dead_letter(&self, id: &str) -> Key {
        self.dead_letters.child(id)
    }

    pub(crate) fn claim(&self, id: &str) -> Key {
        self.claims.child(id)
    }

    pub(crate) fn paused(&self) -> &Key {
        &self.paused
    }

    pub(crate) fn ready(&self, at: Moment, id: &str) -> Key {
        self.ready.child(&at.sortable()).child(id)
    }

    pub(crate) fn due(&self, at: Moment, id: &str) -> Key {
        self.due.child(&at.sortable()).child(id)
    }

    pub(crate) fn rows_range(&self) -> KeyRange {
        KeyRange::under(&Prefix::from(&self.rows))
    }

    pub(crate) fn dead_letters_range(&self) -> KeyRange {
        KeyRange::under(&Prefix::from(&self.dead_letters))
    }

    pub(crate) fn ready_range(&self) -> KeyRange {
        KeyRange::under(&Prefix::from(&self.ready))
    }

    pub(crate) fn due_range(&self) -> KeyRange {
        KeyRange::under(&Prefix::from(&self.due))
    }

    /// Everything that a worker wants to hear of: `due`, `paused` and `ready`, which lie side by
    /// side; signs of life do not.
    pub(crate) fn watched_range(&self) -> KeyRange {
        let control = self.due.ancestor(self.due.depth() - 1).unwrap_or_else(Prefix::all);
        KeyRange::between(&control, Some("due"), Some("ready"))
    }

    /// The id in the key of a row; `None` for what lies deeper.
    pub(crate) fn id_of_row(&self, key: &Key) -> Option<String> {
        last(key, &self.rows)
    }

    pub(crate) fn id_of_dead_letter(&self, key: &Key) -> Option<String> {
        last(key, &self.dead_letters)
    }

    /// An entry of the section `ready`.
    pub(crate) fn ready_entry(&self, key: &Key) -> Option<IndexEntry> {
        entry(key, &self.ready)
    }

    /// An entry of the section `due`.
    pub(crate) fn due_entry(&self, key: &Key) -> Option<IndexEntry> {
        entry(key, &self.due)
    }
}

fn last(key: &Key, parent: &Key) -> Option<String> {
    let depth = parent.depth();
    let is_child = key.depth() == depth + 1 && key.ancestor(depth) == Some(Prefix::from(parent));
    is_child.then(|| key.segments().nth(depth).unwrap_or_default().into_owned())
}

fn entry(key: &Key, section: &Key) -> Option<IndexEntry> {
    let depth = section.depth();
    if key.depth() != depth + 2 || key.ancestor(depth) != Some(Prefix::from(section)) {
        return None;
    }
    let mut segments = key.segments().past(depth);
    let at = Moment::from_sortable(&segments.next()?)?;
    Some(IndexEntry { key: key.clone(), at, id: segments.next()?.into_owned() })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn keys_tell_their_ids_and_times_whatever_an_id_looks_like() {
        let places = Places::of("a:b").unwrap();
        let at = Moment::of(Timestamp::from_millisecond(1_767_225_600_123).unwrap());
        for id in ["1", "a:b", "x%y", "ä", "ready"] {
            assert_eq!(places.id_of_row(&places.row(id)).as_deref(), Some(id));
            assert_eq!(places.id_of_dead_letter(&places.dead_letter(id)).as_deref(), Some(id));
            let ready = places.ready_entry(&places.ready(at, id)).unwrap();
            assert_eq!((ready.at, ready.id.as_str()), (at, id));
            assert!(places.due_entry(&places.ready(at, id)).is_none());
            assert!(places.due_entry(&places.due(at, id)).is_some());
            assert!(places.watched_range().contains(&places.due(at, id)));
            assert!(places.watched_range().contains(&places.ready(at, id)));
            assert!(!places.watched_range().contains(&places.claim(id)));
        }
        assert!(places.watched_range().contains(places.paused()));
        assert_eq!(places.row("1").to_string(), "queue:a%3Ab:1");
        assert_eq!(places.ready(at, "1").to_string(), "system:queue:a%3Ab:ready:001767225600123:1");
    }
}
