//! Where a store of a schema is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use keyward_records::Records;
use keyward_schema::StoreDeclaration;
use tokio::sync::Mutex;

use crate::{Sameness, open};

/// Where a store is, and its records once it is open.
#[derive(Clone)]
pub(super) struct Place {
    pub url: Option<String>,
    /// The coordinator that stands beside the URL, not in it.
    coordinator: Option<String>,
    /// What a relative place is relative to; the current directory, if empty.
    folder: PathBuf,
    /// The same for the coordinator, whose line stays when the store is moved.
    coordinator_folder: PathBuf,
    pub opened: Arc<Mutex<Option<Records>>>,
}

impl Place {
    /// The place that a schema file in a folder declares.
    pub fn declared(store: &StoreDeclaration, folder: &Path) -> Self {
        Self {
            url: store.url.clone(),
            coordinator: store.coordinator.clone(),
            folder: folder.to_owned(),
            coordinator_folder: folder.to_owned(),
            opened: Arc::default(),
        }
    }

    /// The same store at another place. Its coordinator knows one store: it comes along where that is the same one
    /// under another name, or where the schema leaves open which one it is.
    pub fn moved(&self, url: String) -> Self {
        let is_same = match self.url.as_deref() {
            None => true,
            Some(declared) => open::url_beside(&self.folder, declared)
                .is_ok_and(|declared| Sameness::of(&declared, &url) == Sameness::Same),
        };
        let keeps = is_same && open::lacks_coordinator(&url);
        let (coordinator, coordinator_folder) = match (&self.coordinator, &self.url) {
            (Some(coordinator), _) if keeps => {
                (Some(coordinator.clone()), self.coordinator_folder.clone())
            }
            // One that stands in the URL.
            (None, Some(declared)) if keeps => {
                (open::coordinator_of(declared), self.folder.clone())
            }
            _ => (None, PathBuf::new()),
        };
        let folder = PathBuf::new();
        Self { url: Some(url), coordinator, folder, coordinator_folder, opened: Arc::default() }
    }

    /// The URL with which the store is opened, if it is said.
    pub fn whole_url(&self) -> keyward_engine::Result<Option<String>> {
        let Some(url) = &self.url else { return Ok(None) };
        let url = open::url_beside(&self.folder, url)?;
        Ok(Some(match self.coordinator_url()? {
            Some(coordinator) => open::with_coordinator(&url, &coordinator),
            None => url,
        }))
    }

    /// Where the coordinator is, if the store has one.
    pub fn coordinator(&self) -> Option<String> {
        open::coordinator_of(&self.whole_url().ok()??)
    }

    fn coordinator_url(&self) -> keyward_engine::Result<Option<String>> {
        let coordinator = self.coordinator.as_deref();
        coordinator.map(|it| open::url_beside(&self.coordinator_folder, it)).transpose()
    }
}
