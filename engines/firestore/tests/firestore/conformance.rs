//! The behaviours every engine must show.

use std::sync::Arc;

use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{Place, TestClock, conformance};

use crate::emulator::Fresh;

struct InProject(Fresh);

impl Place for InProject {
    fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async { Arc::new(self.0.engine(clock).await) as Arc<dyn Engine> })
    }
}

conformance!(firestore, InProject(Fresh::new()));
