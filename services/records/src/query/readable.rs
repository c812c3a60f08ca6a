//! Whether an index can be asked.

use std::sync::Arc;

use crate::catalog::{IndexState, Snapshot};
use crate::index::Layout;
use crate::space::Space;
use crate::walk::Walk;
use crate::{Error, Result};

/// Why an index cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    Missing,
    Changed,
    Building,
    Disabled,
}

pub(super) fn state(catalog: &Snapshot, layout: &Layout) -> Result<(), Unreadable> {
    match catalog.content.indexes.get(&layout.index.name) {
        None => Err(Unreadable::Missing),
        Some(index) if index.definition != layout.index => Err(Unreadable::Changed),
        Some(index) => match index.state {
            IndexState::Readable => Ok(()),
            IndexState::Building => Err(Unreadable::Building),
            IndexState::Disabled => Err(Unreadable::Disabled),
        },
    }
}

impl Space {
    /// An index of the schema.
    pub(crate) fn declared(&self, name: &str) -> Result<&keyward_schema::Index> {
        let space = &self.access.space;
        space.index(name).ok_or_else(|| {
            let known: Vec<&str> = space.indexes.iter().map(|index| index.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Error::UnknownIndex { space: space.name.clone(), index: name.to_owned(), known }
        })
    }

    /// The catalog in which an index can be asked; `None` where there is nothing to ask about yet.
    pub(crate) async fn readable(&self, layout: &Layout) -> Result<Option<Arc<Snapshot>>> {
        let shared = &self.shared;
        let mut catalog = shared.catalog.current(&shared.store, &*shared.clock).await?;
        if state(&catalog, layout) != Ok(()) {
            catalog = shared.catalog.read(&shared.store, &*shared.clock).await?;
        }
        match state(&catalog, layout) {
            Ok(()) => Ok(Some(catalog)),
            // The first write to the space makes it readable.
            Err(Unreadable::Missing | Unreadable::Building) if self.has_nothing().await? => {
                Ok(None)
            }
            Err(reason) => Err(self.not_ready(layout, reason)),
        }
    }

    async fn has_nothing(&self) -> Result<bool> {
        Walk::keys(&self.shared.store, &self.access.space.key)?.is_empty().await
    }

    pub(super) fn not_ready(&self, layout: &Layout, reason: Unreadable) -> Error {
        let reason = match reason {
            Unreadable::Missing => "the store does not have it yet",
            Unreadable::Changed => "the store has one of this name that is made otherwise",
            Unreadable::Building => "it is being built",
            Unreadable::Disabled => "it is disabled",
        };
        Error::IndexNotReady { index: layout.index.name.clone(), reason }
    }
}
