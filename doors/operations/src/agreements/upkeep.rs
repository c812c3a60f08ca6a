//! What a workspace does beside requests.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use keyward::agreements::{Course, PageId, Task};
use keyward::queue::WorkerOptions;
use tokio::runtime::Handle;

use super::Kept;
use crate::background::Pauses;
use crate::lifecycle::Lifecycle;

/// Who asks for what nobody asked for.
pub const SELF: &str = "keyward";
/// How often it is looked whether a purge is due. Whether it is, all servers of the store decide together.
const PURGE_LOOK: Duration = Duration::from_secs(60 * 60);
/// How long after the start it is looked for the first time: what stops at once leaves pages alone.
const PURGE_FIRST: Duration = Duration::from_secs(60);

impl Kept {
    /// Works off tasks, until the server stops.
    pub(super) async fn work_off(&self, lifecycle: &Lifecycle) {
        let mut pauses = Pauses::default();
        let options =
            WorkerOptions { concurrency: self.settings.workers, ..WorkerOptions::default() };
        while let Err(error) = self.workspace.work(options.clone(), lifecycle.stopping()).await {
            tracing::warn!(workspace = self.name(), %error, "no task is worked on now");
            if !pauses.wait(lifecycle).await {
                return;
            }
        }
    }

    /// Has pages that changed looked at again, until the server stops.
    pub(super) async fn follow_pages(&self, lifecycle: &Lifecycle) {
        let mut pauses = Pauses::default();
        loop {
            let changes = match self.workspace.source().changes().await {
                // Its source does not tell.
                Ok(None) => return,
                Ok(Some(changes)) => changes,
                Err(error) => {
                    tracing::warn!(workspace = self.name(), %error, "pages cannot be watched now");
                    if !pauses.wait(lifecycle).await {
                        return;
                    }
                    continue;
                }
            };
            let mut changes = pin!(changes.take_until(lifecycle.stopping()));
            while let Some(changed) = changes.next().await {
                self.look_again(changed.page).await;
            }
            if lifecycle.is_stopping() || !pauses.wait(lifecycle).await {
                return;
            }
        }
    }

    /// Has the policies of a page looked at. What cannot be asked for now is found by whoever asks for
    /// them next.
    ///
    /// A page that is gone is left to the daily purge: a folder that is changed as a whole, as by a checkout
    /// of another branch, may have it again in a moment.
    pub async fn look_again(&self, page: PageId) {
        if !matches!(self.workspace.source().page(&page).await, Ok(Some(_))) {
            return;
        }
        let task = Task::Policies { page };
        if let Err(error) = self.workspace.submit(task, SELF, None).await {
            tracing::warn!(workspace = self.name(), %error, "a page that changed is not looked at");
        }
    }

    /// Removes what was made of pages that are gone, and what is left of uploads, once in a while, until the
    /// server stops.
    pub(super) async fn purge_daily(&self, lifecycle: &Lifecycle) {
        let mut pause = PURGE_FIRST.min(self.settings.purge_interval);
        loop {
            tokio::select! {
                () = lifecycle.stopping() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = PURGE_LOOK.min(self.settings.purge_interval);
            let untold = Course::untold();
            let purged = tokio::select! {
                () = lifecycle.stopping() => return,
                purged = self.workspace.purge(false, &untold) => purged,
            };
            match purged {
                Ok(Some(swept)) => {
                    let (pages, removed) = (swept.roots, swept.entries);
                    tracing::info!(workspace = self.name(), pages, removed, "pages were purged");
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(workspace = self.name(), %error, "no page is purged now");
                }
            }
            self.sweep_uploads().await;
        }
    }

    /// Removes what is left of uploads that came to no end.
    async fn sweep_uploads(&self) {
        let Some(uploads) = self.workspace.uploads() else { return };
        if let Err(error) = uploads.sweep().await {
            tracing::warn!(workspace = self.name(), %error, "no upload is swept now");
        }
    }
}

/// A look at a page that is due once a change of it has ended. A client that hangs up in the middle drops the
/// request, but the change may be done all the same: then the look goes on as a task of its own.
#[derive(Debug)]
pub struct LookDue {
    kept: Kept,
    page: Option<PageId>,
}

impl LookDue {
    /// A look at one page.
    pub fn new(kept: &Kept, page: &PageId) -> Self {
        Self { kept: kept.clone(), page: Some(page.clone()) }
    }

    /// Has the page looked at now.
    pub async fn look(mut self) {
        if let Some(page) = self.page.clone() {
            self.kept.look_again(page).await;
        }
        self.page = None;
    }

    /// Nothing was changed: there is nothing to look at.
    pub fn forget(mut self) {
        self.page = None;
    }
}

impl Drop for LookDue {
    fn drop(&mut self) {
        let (Some(page), Ok(runtime)) = (self.page.take(), Handle::try_current()) else { return };
        let kept = self.kept.clone();
        runtime.spawn(async move { kept.look_again(page).await });
    }
}
