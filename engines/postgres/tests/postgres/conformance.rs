//! The behaviours every engine must show.

use std::sync::Arc;

use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{Place, TestClock, conformance};

use crate::server::Fresh;

struct OnServer(Fresh);

impl Place for OnServer {
    fn open(&self, _: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async { Arc::new(self.0.engine().await) as Arc<dyn Engine> })
    }
}

conformance!(postgres, OnServer(Fresh::new()));
