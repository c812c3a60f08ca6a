//! Reading: the coordinator says what exists, the pending row or the value store gives the value.

use std::collections::HashMap;

use keyward_engine::{Cursor, Entry, Error, ErrorKind, Json, Page, Result, Row, Scan, Want};
use keyward_key::Key;

use crate::head::{Hash, Head};
use crate::layout;
use crate::pending::read_mark;
use crate::shared::Shared;
use crate::takeover::Sighting;

/// How often a read begins again because keys change meanwhile.
const ROUNDS_MAX: usize = 16;

/// The coordinator's rows of one key, read at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub head: Option<Entry>,
    pub pending: Option<Entry>,
}

/// What the rows of a key say about its entry.
enum Found {
    /// All of it.
    Known(Option<Entry>),
    /// The value is in the value store. With a hash, it must have that one.
    Stored(Entry, Option<Hash>),
    /// The two rows are of different moments.
    Torn,
}

/// The entry of a head, with the value it stands for.
fn entry_of(head: &Entry, value: Json) -> Entry {
    Entry { value, ..head.clone() }
}

impl Shared {
    /// The rows of some keys. Each step of the read is of one moment, and holds both rows of its keys.
    pub(crate) async fn rows_of(&self, keys: &[Key]) -> Result<Vec<Rows>> {
        let asked: Vec<Key> =
            keys.iter().flat_map(|key| [key.clone(), layout::pending(key)]).collect();
        // An even number, so that no pair is torn apart.
        let step = (self.coordinator.capabilities().limits.get_keys_max / 2).max(1) * 2;
        let mut rows = Vec::with_capacity(keys.len());
        for some in asked.chunks(step) {
            let mut read = self.rows(some).await?.into_iter();
            while let (Some(head), Some(pending)) = (read.next(), read.next()) {
                rows.push(Rows { head, pending });
            }
        }
        Ok(rows)
    }

    fn found(&self, key: &Key, rows: &Rows) -> Result<Found> {
        if layout::is_reserved(key) {
            return Ok(Found::Known(None));
        }
        let Some(head) = &rows.head else { return Ok(Found::Known(None)) };
        if self.is_kept(key) {
            return Ok(Found::Known(Some(head.clone())));
        }
        let hash = match Head::read(key, &head.value)? {
            Head::Inline(value) | Head::Kept(value) => {
                return Ok(Found::Known(Some(entry_of(head, value))));
            }
            Head::Adopted(_) => return Ok(Found::Stored(head.clone(), None)),
            Head::Stored(hash) => hash,
        };
        let Some(pending) = &rows.pending else {
            return Ok(Found::Stored(head.clone(), Some(hash)));
        };
        let mark = read_mark(key, pending)?;
        if mark.hash.as_ref() == Some(&hash) && !mark.inline {
            return Ok(Found::Known(Some(entry_of(head, pending.value.clone()))));
        }
        Ok(Found::Torn)
    }

    /// The entries of some keys at one moment: that of the coordinator's read. A value that is read from the value
    /// store afterwards counts only if it has the hash that the coordinator named at that moment.
    pub(crate) async fn read_many(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        // Values of the value store that were read on the way: they stay right for their hash.
        let mut read: HashMap<(Key, Hash), Json> = HashMap::new();
        for _ in 0..ROUNDS_MAX {
            let rows = self.rows_of(keys).await?;
            let mut entries = Vec::with_capacity(keys.len());
            let mut missing: Vec<(Key, Entry, Option<Hash>)> = Vec::new();
            let mut is_torn = false;
            for (key, rows) in keys.iter().zip(&rows) {
                entries.push(match self.found(key, rows)? {
                    Found::Known(entry) => entry,
                    Found::Torn => {
                        is_torn = true;
                        None
                    }
                    Found::Stored(head, hash) => {
                        let value =
                            hash.as_ref().and_then(|hash| read.get(&(key.clone(), hash.clone())));
                        let entry = value.map(|value| entry_of(&head, value.clone()));
                        if entry.is_none() {
                            missing.push((key.clone(), head, hash));
                        }
                        entry
                    }
                });
            }
            if missing.is_empty() && !is_torn {
                return Ok(entries);
            }
            missing.sort_by(|one, other| one.0.cmp(&other.0));
            missing.dedup_by(|one, other| one.0 == other.0);
            let sightings = self.look(missing, &mut read).await?;
            if sightings.is_empty() && !is_torn {
                for (at, (key, rows)) in keys.iter().zip(&rows).enumerate() {
                    if let Found::Stored(head, Some(hash)) = self.found(key, rows)? {
                        entries[at] = read
                            .get(&(key.clone(), hash))
                            .map(|value| entry_of(&head, value.clone()));
                    }
                }
                return Ok(entries);
            }
            self.take_over(sightings).await?;
        }
        let message = format!(
            "the entries of {} keys changed again and again while they were read",
            keys.len()
        );
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// Reads settled values into `read`, and gives those that are not as their heads say.
    async fn look(
        &self,
        missing: Vec<(Key, Entry, Option<Hash>)>,
        read: &mut HashMap<(Key, Hash), Json>,
    ) -> Result<Vec<Sighting>> {
        let keys: Vec<Key> = missing.iter().map(|(key, ..)| key.clone()).collect();
        let shown = self.shown(&keys).await?;
        let mut sightings = Vec::new();
        for ((key, head, hash), shown) in missing.into_iter().zip(shown) {
            match (&shown, hash) {
                (Some(entry), Some(hash)) if hash.is_of(&entry.value) => {
                    read.insert((key, hash), entry.value.clone());
                }
                (None, None) if self.is_fresh(&key, &head)? => return Err(self.is_late(&key)),
                _ => {
                    sightings.push(Sighting { key, head: Some(head.version), pending: None, shown })
                }
            }
        }
        Ok(sightings)
    }

    /// Whether a head was adopted so lately that a read of the value store may not show the key yet, although a
    /// listing did.
    pub(crate) fn is_fresh(&self, key: &Key, head: &Entry) -> Result<bool> {
        Ok(match Head::read(key, &head.value)? {
            Head::Adopted(Some(at)) => self.now() < self.visible_at(at),
            _ => false,
        })
    }

    fn is_late(&self, key: &Key) -> Error {
        let message = format!("the value store lists {key}, but does not show its value yet");
        let hint = format!(
            "Another program wrote it lately, and reads of the value store are up to {} s late. Try again then.",
            self.lag().as_secs().max(1)
        );
        Error::new(ErrorKind::Unavailable, message).advise(hint)
    }

    /// One page of a range: rows of the coordinator with their values.
    pub(crate) async fn read_page(&self, scan: &Scan) -> Result<Page> {
        let mut rows: Vec<Row> = Vec::new();
        let mut next = None;
        'pieces: for piece in layout::visible_pieces(&scan.remaining(), scan.order) {
            let mut part = Scan { range: piece, after: None, ..scan.clone() };
            loop {
                let room = scan.limit - rows.len();
                // A full page asks for one row more, only to learn whether there is one.
                part.limit = room.max(1);
                let page = self.coordinator.scan(&part).await?;
                let is_more = if room == 0 { !page.rows.is_empty() } else { page.next.is_some() };
                if room > 0 {
                    rows.extend(page.rows);
                }
                if is_more && rows.len() == scan.limit {
                    next = rows.last().map(|row| Cursor::after_key(&row.key));
                    break 'pieces;
                }
                part.after = page.next;
                if part.after.is_none() {
                    break;
                }
            }
        }
        if scan.want == Want::Entries {
            rows = self.filled(rows).await?;
        }
        Ok(Page { rows, next })
    }

    /// Rows whose entries are heads, with the entries they stand for. Those that were deleted since are left out.
    async fn filled(&self, rows: Vec<Row>) -> Result<Vec<Row>> {
        let data: Vec<Key> =
            rows.iter().filter(|row| !self.is_kept(&row.key)).map(|row| row.key.clone()).collect();
        let pending_keys: Vec<Key> = data.iter().map(layout::pending).collect();
        let pendings = self.rows(&pending_keys).await?;
        let mut pendings: HashMap<Key, Option<Entry>> = data.into_iter().zip(pendings).collect();
        let mut unknown = Vec::new();
        let mut filled = Vec::with_capacity(rows.len());
        for row in rows {
            let pending = pendings.remove(&row.key).flatten();
            let found = self.found(&row.key, &Rows { head: row.entry, pending })?;
            match found {
                Found::Known(entry) => filled.push(Row { key: row.key, entry }),
                Found::Stored(..) | Found::Torn => {
                    unknown.push((filled.len(), row.key.clone()));
                    filled.push(Row { key: row.key, entry: None });
                }
            }
        }
        for some in unknown.chunks(self.capabilities.limits.get_keys_max) {
            let keys: Vec<Key> = some.iter().map(|(_, key)| key.clone()).collect();
            for ((at, _), entry) in some.iter().zip(self.read_many(&keys).await?) {
                filled[*at].entry = entry;
            }
        }
        filled.retain(|row| row.entry.is_some());
        Ok(filled)
    }
}
