//! The behaviours every engine must show.

use std::path::Path;
use std::sync::Arc;

use keyward_embedded::{Embedded, Options};
use keyward_engine::{BoxFuture, Durability, Engine};
use keyward_testkit::{Place, TestClock, conformance};
use tempfile::TempDir;

struct Directory {
    directory: TempDir,
    options: Options,
}

impl Directory {
    fn new(durability: Durability) -> Self {
        let options = Options { durability, ..Options::default() };
        Self { directory: tempfile::tempdir().unwrap(), options }
    }
}

fn engine(directory: &Path, options: Options, clock: TestClock) -> Arc<dyn Engine> {
    Arc::new(Embedded::open_with(directory, options, clock).unwrap())
}

impl Place for Directory {
    fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async { engine(self.directory.path(), self.options, clock) })
    }

    fn open_with_history(
        &self,
        clock: TestClock,
        commits: usize,
    ) -> Option<BoxFuture<'_, Arc<dyn Engine>>> {
        let options = Options { history: commits as u64, ..self.options };
        Some(Box::pin(async move { engine(self.directory.path(), options, clock) }))
    }
}

conformance!(synced, Directory::new(Durability::Synced));
conformance!(relaxed, Directory::new(Durability::Relaxed));
