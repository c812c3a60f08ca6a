//! Pages of documents in the order of their keys.

use keyward_engine::{
    Cursor, DocumentList, Entry, Error, ErrorKind, Order, Page, PageBytes, Result, Row, Scan, Want,
};
use keyward_key::{Key, KeyRange};

use super::DocumentLayout;
use super::fields::Fields;
use super::own_changes::Change;
use super::place::{Address, Part, Place};
use super::span::{Span, is_continued};
use super::window::{Gathering, Listed, Window};
use crate::places;

/// After how many bytes of documents a page ends.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// How many documents of a page are read before anything is known of their size.
const FIRST_DOCUMENTS: usize = 8;

/// What a scan asks for.
struct Wanted {
    part: Part,
    user: String,
    namespace: Option<String>,
    range: KeyRange,
    order: Order,
    limit: usize,
}

impl Wanted {
    fn listed(&self) -> Listed {
        (self.part, self.user.clone(), self.namespace.clone())
    }
}

impl DocumentLayout {
    pub(super) async fn page(&self, scan: &Scan) -> Result<Page> {
        let range = scan.remaining();
        if range.is_empty() {
            return Ok(Page::default());
        }
        let Span::Of { part, user, namespace } = Span::of(&range)? else {
            return Ok(Page::default());
        };
        let Scan { order, limit, .. } = *scan;
        let wanted = Wanted { part, user, namespace, range, order, limit };
        let keys = self.nearest(&wanted, is_continued(scan, part)).await?;
        let more = keys.len() > limit;
        let keys = keys.get(..limit).unwrap_or(&keys);
        match scan.want {
            Want::Keys => {
                let next = keys.last().filter(|_| more).map(Cursor::after_key);
                let rows = keys.iter().map(|key| Row { key: key.clone(), entry: None });
                Ok(Page { rows: rows.collect(), next })
            }
            Want::Entries => self.entries(part, keys, more).await,
        }
    }

    /// The documents of some keys that were listed. What is gone by now, or is no entry, is left out.
    ///
    /// Documents may be large. So few are read at first, and then as many as fit the page if they are as large as those
    /// before.
    async fn entries(&self, part: Part, all: &[Key], more: bool) -> Result<Page> {
        let (mut rows, mut bytes) = (Vec::new(), PageBytes::new(PAGE_BYTES_MAX));
        let mut unread = all;
        while !unread.is_empty() && !bytes.is_full() {
            let is_first = unread.len() == all.len();
            let count = if is_first { FIRST_DOCUMENTS } else { bytes.rows_to_read() };
            let count = count.min(self.documents.limits().get_ids_max.max(1));
            let (some, later) = unread.split_at(count.min(unread.len()));
            unread = later;
            let addressed = some.iter().filter_map(|key| Some((key, self.address(key)?)));
            let (keys, addresses): (Vec<&Key>, Vec<Address>) = addressed.unzip();
            let ids: Vec<String> = addresses.iter().map(Address::id).collect();
            let documents = self.read(&ids).await?;
            for ((key, address), document) in keys.into_iter().zip(&addresses).zip(documents) {
                let Some(document) = document else { continue };
                bytes.add(document.fields.len());
                match Fields::of(&document, address) {
                    Some(fields) => {
                        let entry = Some(self.entry(part, &document.id, &fields)?);
                        rows.push(Row { key: key.clone(), entry });
                    }
                    None => {
                        self.skips.note(&address.user, &address.namespace, &document.id);
                    }
                }
            }
        }
        let read = all.get(..all.len() - unread.len());
        let last = read.and_then(<[Key]>::last);
        let next = last.filter(|_| more || !unread.is_empty()).map(Cursor::after_key);
        Ok(Page { rows, next })
    }

    fn address(&self, key: &Key) -> Option<Address> {
        match self.place(key) {
            Place::Document(_, address) => Some(address),
            _ => None,
        }
    }

    /// The part of a document that a key stands for.
    pub(super) fn entry(&self, part: Part, id: &str, fields: &Fields<'_>) -> Result<Entry> {
        let damaged = |error: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Corrupt, format!("the document {id:?} is unreadable: {error}"))
        };
        let (value, version) = match part {
            Part::Entry => {
                let value = fields.body();
                let body = crate::entry::Body::read(&value).map_err(|error| damaged(&error))?;
                let version = crate::fingerprint::of_entry(&body);
                (value, version)
            }
            Part::Access => {
                let mut row = fields.row();
                let version = crate::fingerprint::of_row(&row);
                self.attempts.mark(id, &mut row);
                row.id = Some(id.to_owned());
                (row.write().map_err(|error| damaged(&error))?, version)
            }
        };
        Ok(Entry { value, metadata: None, version, expires: None })
    }

    /// The first keys of a range, one more than the page takes if there are more.
    async fn nearest(&self, wanted: &Wanted, is_continued: bool) -> Result<Vec<Key>> {
        let known = self.windows.get(&wanted.listed(), self.clock.now());
        if let Some(known) = known.filter(|_| is_continued)
            && let Some(keys) = self.choose(&known, wanted)
        {
            return Ok(keys);
        }
        let window = self.list_all(wanted).await?;
        let keys = self.choose(&window, wanted);
        self.windows.keep(wanted.listed(), window);
        keys.ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                "a list does not reach as far as the page that it is for",
            )
        })
    }

    /// The keys of a page, by what was listed and what this process has done since.
    fn choose(&self, window: &Window, wanted: &Wanted) -> Option<Vec<Key>> {
        let &Wanted { part, ref range, order, limit, .. } = wanted;
        let count = limit.saturating_add(1);
        let key = |entry: &Key| key_of(part, entry);
        let unseen = self.own_changes.unseen(window.began, self.documents.list_lag(), key, range);
        let mut keys = window
            .first(range, order, count, |key| unseen.iter().any(|(changed, _)| changed == key))?;
        let created = unseen.into_iter().filter(|(_, change)| *change == Change::Created);
        let listed = keys.len();
        keys.extend(created.map(|(key, _)| key));
        if keys.len() > listed {
            match order {
                Order::Ascending => keys.sort_unstable(),
                Order::Descending => keys.sort_unstable_by(|one, other| other.cmp(one)),
            }
            keys.truncate(count);
        }
        Some(keys)
    }

    /// All documents of the user or namespace, since they come in another order; of their keys, the nearest.
    async fn list_all(&self, wanted: &Wanted) -> Result<Window> {
        let began = self.own_changes.moment(self.clock.now());
        let mut gathering = Gathering::new(&wanted.range, wanted.order, began);
        let mut list = DocumentList {
            owner: wanted.user.clone(),
            group: wanted.namespace.clone(),
            with_documents: false,
            after: None,
            limit: self.documents.limits().list_rows_max.max(1),
        };
        loop {
            let page = self.documents.list(&list).await?;
            for row in page.rows {
                let group = list.group.as_ref();
                let address = Address::of_id(&row.id, &wanted.user, &row.group);
                let address = address.filter(|it| group.is_none_or(|group| *group == it.namespace));
                match address.as_ref().and_then(|it| it.to_key(wanted.part)) {
                    Some(key) => gathering.add(key),
                    None => self.skips.note(&wanted.user, &row.group, &row.id),
                }
            }
            match page.next {
                Some(next) => list.after = Some(next),
                None => return Ok(gathering.finish(self.clock.now())),
            }
        }
    }
}

/// The key of a part of an entry's document.
fn key_of(part: Part, entry: &Key) -> Key {
    match part {
        Part::Entry => entry.clone(),
        Part::Access => places::access(entry),
    }
}
