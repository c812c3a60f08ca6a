//! Where pages come from: a folder, uploads, or Confluence.

mod confluence;
mod folder;
mod secret;
mod settings;
mod title;
mod uploads;

use bytes::Bytes;
use keyward_engine::{BoxFuture, BoxStream};

pub use confluence::{Confluence, ConfluenceOptions, ConfluenceSettings};
pub use folder::{Folder, FolderOptions, LeftOut, Survey};
pub use secret::Secret;
pub use settings::{Opened, SourceProblem, SourceSettings};
pub use uploads::{Swept, UploadOptions, Uploads};

use crate::{Error, Page, PageId, PageSummary, Result, SourceId};

/// Where pages come from: a folder, uploads, a wiki.
///
/// What is not there is `None`, and only if that is certain: the source was reached, and said so.
/// Whatever else happens is an error, upon which nothing is ever removed.
pub trait Source: Send + Sync {
    /// What tells this source from others, for people: a path, an address.
    fn identity(&self) -> String;

    /// All pages, by id.
    fn list(&self) -> BoxFuture<'_, Result<Vec<PageSummary>>>;

    /// One page, with what is attached to it.
    fn page<'a>(&'a self, page: &'a PageId) -> BoxFuture<'a, Result<Option<Page>>>;

    /// What an attachment holds. `None` if the page or the attachment is not there.
    fn read<'a>(
        &'a self,
        page: &'a PageId,
        source: &'a SourceId,
    ) -> BoxFuture<'a, Result<Option<Bytes>>>;

    /// Pages that change from now on, for those who want to look at them again; the stream never
    /// ends. `None` from a source that cannot tell.
    fn changes(&self) -> BoxFuture<'_, Result<Option<BoxStream<'static, Changed>>>> {
        Box::pin(async { Ok(None) })
    }
}

/// A page that is new, changed or gone: a reason to look at it again. It may be told without cause.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Changed {
    /// The page.
    pub page: PageId,
}

/// How much a source takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLimits {
    /// Bytes of an attachment.
    pub attachment_bytes_max: u64,
    /// Bytes of a page's text.
    pub body_bytes_max: u64,
    /// Attachments of a page.
    pub attachments_max: usize,
    /// Pages.
    pub pages_max: usize,
}

impl Default for SourceLimits {
    fn default() -> Self {
        Self {
            attachment_bytes_max: 64 << 20,
            body_bytes_max: 1 << 20,
            attachments_max: 1_000,
            pages_max: 100_000,
        }
    }
}

/// Something that may be different the next time.
fn failed(message: impl Into<String>) -> Error {
    Error::Source { message: message.into(), retryable: true }
}

/// Something that stays as it is until somebody changes it.
fn refused(message: impl Into<String>) -> Error {
    Error::Source { message: message.into(), retryable: false }
}
