//! The behaviours every engine must show.

use std::sync::Arc;

use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{Place, TestClock, conformance};
use tempfile::TempDir;

use super::server::{Namespace, address};

struct InNamespace {
    namespace: Arc<Namespace>,
    directory: TempDir,
}

impl InNamespace {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { namespace: Arc::new(Namespace::late()), directory }
    }
}

impl Place for InNamespace {
    fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            let engine =
                super::open(&self.namespace, address(), self.directory.path(), &clock).await;
            Arc::new(engine) as Arc<dyn Engine>
        })
    }
}

conformance!(embedded, InNamespace::new());
