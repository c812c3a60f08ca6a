//! The documents, as an engine presents them.

use std::collections::HashMap;

use keyward_engine::{
    BoxFuture, Capabilities, Commit, Document, Engine, Entry, Error, ErrorKind, Outcome, Page,
    Result, Scan, Stats, Version,
};
use keyward_key::{Key, KeyRange};

use super::DocumentLayout;
use super::fields::Fields;
use super::place::Place;

/// The version of what is always there and never changes.
pub(super) fn fixed_version() -> Version {
    Version::parse("layout-document")
}

impl DocumentLayout {
    async fn get_entries(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        let places: Vec<Place> = keys.iter().map(|key| self.place(key)).collect();
        let mut documents: HashMap<String, Option<Document>> = HashMap::new();
        for place in &places {
            if let Place::Document(_, address) = place {
                let id = address.id();
                // No document has a longer id.
                if id.len() <= self.documents.limits().id_bytes_max {
                    documents.insert(id, None);
                }
            }
        }
        let ids: Vec<String> = documents.keys().cloned().collect();
        if !ids.is_empty() {
            let found = self.read(&ids).await?;
            documents.extend(ids.into_iter().zip(found));
        }
        let entries = places.into_iter().map(|place| match place {
            Place::Nothing => Ok(None),
            Place::Fixed(value) => {
                let version = fixed_version();
                Ok(Some(Entry { value, metadata: None, version, expires: None }))
            }
            Place::Document(part, address) => {
                let id = address.id();
                let document = documents.get(&id).and_then(Option::as_ref);
                match document.and_then(|document| Fields::of(document, &address)) {
                    Some(fields) => self.entry(part, &id, &fields).map(Some),
                    None => Ok(None),
                }
            }
        });
        let entries = entries.collect::<Result<Vec<_>>>()?;
        if let [_] = keys {
            documents.into_values().flatten().for_each(|document| self.recent.keep(document));
        }
        Ok(entries)
    }
}

impl Engine for DocumentLayout {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(self.get_entries(keys))
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(self.page(scan))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(self.swap(commit))
    }

    /// Looks at the whole database, whatever the range: conflicts of replication, where it can have them.
    fn verify<'a>(&'a self, _range: &'a KeyRange) -> BoxFuture<'a, Result<()>> {
        self.documents.verify()
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(async {
            let message =
                "layout=document cannot count all entries: the database's index is by userId";
            Err(Error::new(ErrorKind::Unsupported, message).advise(
                "Use the statistics of one namespace of a user, or the database's own tools.",
            ))
        })
    }
}
