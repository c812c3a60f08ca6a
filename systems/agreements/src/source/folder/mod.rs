//! Pages in a folder: one directory each.

mod files;
mod names;
mod page;
mod snapshot;
mod watch;

#[cfg(target_os = "linux")]
mod inotify;
#[cfg(not(target_os = "linux"))]
#[path = "unwatched.rs"]
mod inotify;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use keyward_engine::{BoxFuture, BoxStream};

use super::{Changed, Source, SourceLimits, failed};
use crate::{Error, Page, PageId, PageSummary, Result, SourceId};

/// Pages in a folder.
///
/// Each directory in the folder is a page, and its name, in Unicode's form NFC, is the page's id. Its
/// text is the first of `page.md`, `index.md`, `README.md`, `page.html` and `index.html` that is there;
/// every other regular file is attached to it, and the file's name is the policy's id. Hidden files and
/// directories, links and directories within a page's are no part of it. A page is called by its first
/// heading of level one, or its HTML title, else by its directory.
///
/// An attachment's `created` is when its inode last changed (`ctime`): unlike the time of modification it
/// rises when a file is replaced by an older one, and nobody can set it. On file systems that keep none,
/// it is the time of modification.
///
/// No link is followed below the folder, and files are only opened by names that were listed: an id cannot
/// lead outside. A page is certainly not there if the folder could be listed, has other pages, and not this
/// one. A folder without any page may be one that is not mounted, so that nothing is certain then.
#[derive(Debug, Clone)]
pub struct Folder {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    options: FolderOptions,
}

/// How a folder is read and watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderOptions {
    /// How much is taken.
    pub limits: SourceLimits,
    /// A change is told when there was no other for so long,
    pub quiet: Duration,
    /// or after so long at the latest.
    pub delay_max: Duration,
    /// How often everything is compared where the system does not tell of changes.
    pub poll: Duration,
    /// How often everything is compared although it does: file systems of other machines are silent.
    pub rescan: Duration,
    /// Whether the system is asked to tell of changes.
    pub watch: bool,
}

impl Default for FolderOptions {
    fn default() -> Self {
        Self {
            limits: SourceLimits::default(),
            quiet: Duration::from_millis(250),
            delay_max: Duration::from_secs(2),
            poll: Duration::from_secs(5),
            rescan: Duration::from_secs(300),
            watch: true,
        }
    }
}

/// What is in a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// The pages, by id.
    pub pages: Vec<PageSummary>,
    /// What looks like a page and is none.
    pub left_out: Vec<LeftOut>,
}

/// Something that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name, as far as that can be shown.
    pub name: String,
    /// Why it is left out.
    pub reason: String,
}

impl Folder {
    /// The pages in a folder. Nothing is read yet.
    pub fn new(root: impl Into<PathBuf>, options: FolderOptions) -> Self {
        Self { inner: Arc::new(Inner { root: root.into(), options }) }
    }

    /// All pages, and what cannot be one. Two directories whose names are one in Unicode's form NFC are
    /// an error that names both.
    pub async fn survey(&self) -> Result<Survey> {
        self.blocking(page::survey).await
    }

    /// Does what waits for disks where that holds up nobody.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = self.inner.clone();
        blocking(move || work(&inner)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| failed(format!("the folder was not read to the end: {error}")))?
}

/// Refuses what no file and no directory of ours can be called.
fn check_name(text: &str) -> Result<()> {
    if text.starts_with('.') || text.contains(['/', '\0']) {
        return Err(Error::Invalid(format!(
            "{text:?} is no name in a folder: it begins with a dot, or has a slash in it"
        )));
    }
    Ok(())
}

impl Source for Folder {
    fn identity(&self) -> String {
        // One that is away is called as it is written.
        let root = std::fs::canonicalize(&self.inner.root);
        let root = root.unwrap_or_else(|_| self.inner.root.clone());
        format!("the folder {}", root.display())
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<PageSummary>>> {
        Box::pin(async move {
            let survey = self.survey().await?;
            for LeftOut { name, reason } in &survey.left_out {
                tracing::warn!(name, reason, "a directory is no page");
            }
            Ok(survey.pages)
        })
    }

    fn page<'a>(&'a self, id: &'a PageId) -> BoxFuture<'a, Result<Option<Page>>> {
        Box::pin(async move {
            check_name(id.as_str())?;
            let id = id.clone();
            self.blocking(move |inner| page::page(inner, &id)).await
        })
    }

    fn read<'a>(
        &'a self,
        id: &'a PageId,
        source: &'a SourceId,
    ) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            check_name(id.as_str())?;
            check_name(source.as_str())?;
            let (id, source) = (id.clone(), source.clone());
            self.blocking(move |inner| page::read(inner, &id, &source)).await
        })
    }

    fn changes(&self) -> BoxFuture<'_, Result<Option<BoxStream<'static, Changed>>>> {
        Box::pin(async move { Ok(Some(watch::changes(self.inner.clone()).await?)) })
    }
}
