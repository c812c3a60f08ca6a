//! The behaviours every engine must show. Reads are made as late as listings, which Forge's
//! need not be.

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
    /// Whether it is in a custom entity.
    is_entity: bool,
}

impl InForge {
    fn new(is_entity: bool) -> Self {
        Self { installation: Installation::new(), is_entity }
    }

    fn options(&self) -> Options {
        match self.is_entity {
            true => self.installation.entity_options(),
            false => self.installation.options(),
        }
    }
}

impl Place for InForge {
    fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            let control = json!({"lag": {"batch": LAG_MS, "query": LAG_MS}});
            self.installation.control(control).await;
            let engine = OnTestClock::open(&self.installation, self.options(), clock).await;
            Arc::new(engine) as Arc<dyn Engine>
        })
    }
}

conformance!(keys, InForge::new(false));
conformance!(entity, InForge::new(true));
