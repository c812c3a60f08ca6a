//! The behaviours every engine must show. Reads by key are made as late as listings, which is later than Forge's.

use std::sync::Arc;

use keyward_engine::{BoxFuture, Engine};
use keyward_forge_kvs::Options;
use keyward_testkit::{Place, TestClock, conformance};
use serde_json::json;

use crate::installation::{Installation, OnTestClock};

/// What the engine declares.
const LAG_MS: u64 = 60_000;

struct InForge {
    installation: Installation,
    /// Whether a batch tells absent keys as failed.
    absent_keys_fail: bool,
}

impl InForge {
    fn new(absent_keys_fail: bool) -> Self {
        Self { installation: Installation::new(), absent_keys_fail }
    }

    fn options(&self) -> Options {
        self.installation.options()
    }
}

impl Place for InForge {
    fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            let control = json!({
                "lag": {"get": LAG_MS, "query": LAG_MS},
                "absentKeysFail": self.absent_keys_fail,
            });
            self.installation.control(control).await;
            let engine = OnTestClock::open(&self.installation, self.options(), clock).await;
            Arc::new(engine) as Arc<dyn Engine>
        })
    }
}

conformance!(forge, InForge::new(true));
