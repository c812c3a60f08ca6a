//! A worker that is killed in the middle: somebody else does its job, and nothing half-done is ever seen.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use keyward_agreements::source::{Source, Uploads};
use keyward_agreements::{Extractor, Page, PageId, PageSummary, Result, SourceId, Task, Workspace};
use keyward_engine::{BoxFuture, SystemClock};
use keyward_extract::Limits;
use keyward_key::Key;
use keyward_models::{Answer, Asked, Provider, Request};
use keyward_queue::{Status, WorkerOptions};
use tokio::runtime::Builder;

use crate::fixture::{
    Desk, found, language, models, options, page, source, translated, translator,
};

const DIRECTORY: &str = "KEYWARD_TEST_DIRECTORY";
const LOOK: Duration = Duration::from_millis(10);

#[test]
fn a_worker_killed_during_extraction_is_taken_over() {
    killed("killed::a_worker_killed_during_extraction_is_taken_over", Stage::Extracting);
}

#[test]
fn a_worker_killed_during_translation_is_taken_over() {
    killed("killed::a_worker_killed_during_translation_is_taken_over", Stage::Translating);
}

#[test]
fn a_worker_killed_during_analysis_is_taken_over() {
    killed("killed::a_worker_killed_during_analysis_is_taken_over", Stage::Analyzing);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Extracting,
    Translating,
    Analyzing,
}

impl Stage {
    fn task(self) -> Task {
        let (page, source) = (page("p1"), source("leave"));
        match self {
            Self::Extracting => Task::Policy { page, source, language: None, redo: false },
            Self::Translating => {
                Task::Policy { page, source, language: Some(language("fr")), redo: false }
            }
            Self::Analyzing => Task::Analyze { page, again: false },
        }
    }

    /// What must not be there before the task is done, and must be afterwards.
    fn key(self) -> Key {
        let key = match self {
            Self::Extracting => "p1:policy:leave",
            Self::Translating => "p1:policy:leave:fr",
            Self::Analyzing => "p1:analysis",
        };
        Key::parse(key).unwrap()
    }
}

fn killed(test: &str, stage: Stage) {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return work_and_stand_still(&PathBuf::from(directory), stage);
    }
    let directory = tempfile::tempdir().unwrap();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = keyward_stores::embedded(&directory.path().join("store"));
        let desk = Desk::new(store.clone(), SystemClock, models(translator()));
        let desk = desk.with_page("p1").await;
        let submitted = desk.workspace.submit(stage.task(), "ada", None).await.unwrap();
        let mut child = child(test, directory.path());
        while !directory.path().join("reached").exists() {
            assert!(child.try_wait().unwrap().is_none(), "the child ended too early");
            tokio::time::sleep(LOOK).await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(store.get(&stage.key()).await.unwrap(), None, "something half-done is seen");
        let (stop, working) = desk.work();
        let statuses: Vec<_> = desk.workspace.jobs().watch(submitted.id()).collect().await;
        let last = statuses.last().unwrap().as_ref().unwrap();
        assert!(matches!(last, Status::Result(_)), "{last:?}");
        assert!(store.get(&stage.key()).await.unwrap().is_some());
        drop(stop);
        working.await.unwrap();
    });
}

fn child(test: &str, directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// What the child does: works, until it comes to the stage, and then nothing more.
fn work_and_stand_still(directory: &Path, stage: Stage) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = keyward_stores::embedded(&directory.join("store"));
        let desk = Desk::new(store.clone(), SystemClock, None);
        let reached = directory.join("reached");
        let source = Arc::new(Stopping(desk.uploads.clone(), stage, reached.clone()));
        let extractor = Extractor::InProcess(Limits::default());
        let models = models(StoppingModel(stage, reached));
        let workspace =
            Workspace::new(store, SystemClock, source, extractor, models, options()).unwrap();
        workspace.work(WorkerOptions::default(), std::future::pending()).await.unwrap();
    });
}

async fn stand_still(reached: &Path) {
    std::fs::write(reached, "").unwrap();
    std::future::pending::<()>().await;
}

/// Uploads whose reader stands still where attachments are read for extraction.
struct Stopping(Arc<Uploads>, Stage, PathBuf);

impl Source for Stopping {
    fn identity(&self) -> String {
        self.0.identity()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<PageSummary>>> {
        self.0.list()
    }

    fn page<'a>(&'a self, page: &'a PageId) -> BoxFuture<'a, Result<Option<Page>>> {
        self.0.page(page)
    }

    fn read<'a>(
        &'a self,
        page: &'a PageId,
        source: &'a SourceId,
    ) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async {
            if self.1 == Stage::Extracting {
                stand_still(&self.2).await;
            }
            self.0.read(page, source).await
        })
    }
}

/// A model that stands still where it is asked for one of the two.
struct StoppingModel(Stage, PathBuf);

impl Provider for StoppingModel {
    fn name(&self) -> &str {
        "stopping"
    }

    fn model(&self) -> &str {
        "stopping"
    }

    fn ask<'a>(&'a self, request: &'a Request) -> Asked<'a> {
        Box::pin(async {
            let translation = translated(request);
            let asked = if translation.is_some() { Stage::Translating } else { Stage::Analyzing };
            if asked == self.0 {
                stand_still(&self.1).await;
            }
            Ok(Answer {
                text: translation.unwrap_or_else(|| found(&[])),
                finish: keyward_models::Finish::Complete,
                usage: keyward_models::Usage::default(),
                model: String::new(),
            })
        })
    }
}
