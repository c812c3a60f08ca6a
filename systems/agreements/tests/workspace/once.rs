//! The cooperative example of the document, over four processes.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use keyward_agreements::source::{Source, Uploads};
use keyward_agreements::{
    Course, Extractor, Page, PageId, PageSummary, Result, SourceId, Workspace,
};
use keyward_engine::{BoxFuture, SystemClock};
use keyward_extract::Limits;
use keyward_models::Scripted;
use tokio::runtime::Builder;

use crate::fixture::{Desk, language, models, options, page, source, translated};

const DIRECTORY: &str = "KEYWARD_TEST_DIRECTORY";
const TEST: &str =
    "once::a_hundred_callers_in_four_processes_cause_one_extraction_and_two_translations";
const PROCESSES: usize = 4;

/// Uploads that note every attachment that is read: one is read for each extraction.
struct Noted(Arc<Uploads>, PathBuf);

impl Source for Noted {
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
        note(&self.1, "extracted");
        self.0.read(page, source)
    }
}

fn note(file: &Path, what: &str) {
    let mut notes = OpenOptions::new().create(true).append(true).open(file).unwrap();
    notes.write_all(format!("{what}\n").as_bytes()).unwrap();
}

#[test]
fn a_hundred_callers_in_four_processes_cause_one_extraction_and_two_translations() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return ask(&PathBuf::from(directory));
    }
    let directory = tempfile::tempdir().unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = keyward_stores::embedded(&directory.path().join("store"));
        Desk::new(store, SystemClock, None).with_page("abc123").await;
    });
    let children: Vec<Child> = (0..PROCESSES).map(|_| child(directory.path())).collect();
    for mut child in children {
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{said}");
        assert!(said.contains("25 have it"), "{said}");
    }
    let notes = std::fs::read_to_string(directory.path().join("notes")).unwrap();
    let mut notes: Vec<&str> = notes.lines().collect();
    notes.sort_unstable();
    assert_eq!(notes, ["extracted", "translated French", "translated German"]);
}

fn child(directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What one of the processes does: 25 callers, of whom half want it in French.
#[allow(clippy::print_stdout, reason = "the child tells its parent")]
fn ask(directory: &Path) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = keyward_stores::embedded(&directory.join("store"));
        let notes = directory.join("notes");
        let seen = notes.clone();
        let scripted = Scripted::new(move |request| {
            let answer = translated(request).unwrap();
            let into = request.prompt["Translate into ".len()..].split('.').next().unwrap();
            note(&seen, &format!("translated {into}"));
            Ok(answer)
        });
        let desk = Desk::new(store.clone(), SystemClock, None);
        let noted = Arc::new(Noted(desk.uploads.clone(), notes));
        let extractor = Extractor::InProcess(Limits::default());
        // Slow machines are no reason to take somebody for dead.
        let options =
            keyward_agreements::Options { lease: std::time::Duration::from_secs(60), ..options() };
        let workspace =
            Workspace::new(store, SystemClock, noted, extractor, models(scripted), options)
                .unwrap();
        let callers: Vec<_> = (0..25)
            .map(|n| {
                let workspace = workspace.clone();
                let code = ["fr", "de"][n % 2];
                tokio::spawn(async move {
                    let (id, policy) = (page("abc123"), source("leave"));
                    let course = Course::untold();
                    let asked = workspace.policy(&id, &policy, Some(language(code)), &course);
                    asked.await.unwrap().language == Some(language(code))
                })
            })
            .collect();
        let mut have_it = 0;
        for caller in callers {
            have_it += usize::from(caller.await.unwrap());
        }
        println!("{have_it} have it");
    });
}
