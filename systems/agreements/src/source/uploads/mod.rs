//! Pages that people put here, kept in the store itself.
//!
//! ```text
//! upload:{page}                              the manifest: title, text, and what is attached
//! upload:{page}:content:{content}            an upload under way: so many pieces are there; expires
//! upload:{page}:content:{content}:{n}        a piece of an attachment, in base64
//! upload:{page}:latest                       when a page was deleted; expires
//! ```
//!
//! An attachment is written under a content id of its own, piece by piece, and each commit renews the note
//! that the upload is under way. The last commit puts it into the manifest and removes the note, if both
//! are as they were: so that a manifest only ever names contents that are whole. A note that is gone never
//! comes back, since every commit checks it: contents that have no note and stand in no manifest belong to
//! nobody, and may be removed by anybody at any time.

mod content;
mod entropy;
mod manifest;
mod pages;
mod sweep;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use keyward_engine::{
    BoxFuture, Clock, Error as StoreError, ErrorKind, ExpirySupport, ScanOrder, Store, Tier,
};

use self::content::UNDER_WAY;
use self::entropy::Entropy;
use super::{Source, SourceLimits};
use crate::{Error, Page, PageId, PageSummary, Result, SourceId};

pub use sweep::Swept;

/// Pages that people put here, kept in the store itself, outside of the pages' own keys: clearing a page
/// never removes what was uploaded. Cheap to clone.
#[derive(Clone)]
pub struct Uploads {
    store: Store,
    clock: Arc<dyn Clock>,
    limits: SourceLimits,
    entropy: Arc<Entropy>,
}

/// How pages are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UploadOptions {
    /// How much is taken.
    pub limits: SourceLimits,
    /// Where content ids come from: from a number, for tests, or from the system.
    pub seed: Option<u64>,
}

impl Uploads {
    /// The pages in a store. Refused on engines that cannot change several keys together, keep no order
    /// of keys, or whose entries do not expire.
    pub fn new(store: Store, clock: impl Clock, options: UploadOptions) -> Result<Self> {
        let capabilities = store.capabilities();
        let (engine, tier) = (capabilities.engine, capabilities.tier());
        let unsupported = |reason: String| {
            let message = format!("uploads need {reason}");
            Err(Error::Store(StoreError::new(ErrorKind::Unsupported, message)))
        };
        if tier != Tier::Atomic {
            return unsupported(format!(
                "commits of several keys, and the {engine} engine has the {tier} tier: a page could \
                 name an attachment that is not whole"
            ));
        }
        if capabilities.scan_order == ScanOrder::Unordered {
            return unsupported(format!("keys in order, which the {engine} engine does not keep"));
        }
        match capabilities.expiry {
            ExpirySupport::Supported { ttl_min, .. } if ttl_min <= UNDER_WAY => {}
            _ => return unsupported(format!("entries that expire; those of {engine} do not")),
        }
        let entropy = Arc::new(Entropy::new(options.seed));
        Ok(Self { store, clock: Arc::new(clock), limits: options.limits, entropy })
    }
}

impl fmt::Debug for Uploads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uploads").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Source for Uploads {
    fn identity(&self) -> String {
        "uploads".to_owned()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<PageSummary>>> {
        Box::pin(self.list_pages())
    }

    fn page<'a>(&'a self, page: &'a PageId) -> BoxFuture<'a, Result<Option<Page>>> {
        Box::pin(async move {
            let kept = self.manifest(page).await?;
            Ok(kept.map(|kept| kept.manifest.page(page)))
        })
    }

    fn read<'a>(
        &'a self,
        page: &'a PageId,
        source: &'a SourceId,
    ) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(self.read_attachment(page, source))
    }
}

/// Something is larger than it may be.
fn too_large(message: String) -> Error {
    StoreError::new(ErrorKind::LimitExceeded, message).into()
}

/// Others were faster every time.
fn contended(page: &PageId) -> Error {
    let message = format!("the page {page} is changed by many at once");
    StoreError::new(ErrorKind::Unavailable, message).into()
}
