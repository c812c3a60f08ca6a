//! A network that fails.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{NetworkPlace, TestClock, network_faults};

use crate::installation::{Installation, OnTestClock};

struct InForge {
    installation: Installation,
    entity: Option<&'static str>,
}

impl InForge {
    fn new(entity: Option<&'static str>) -> Self {
        Self { installation: Installation::new(), entity }
    }
}

impl NetworkPlace for InForge {
    fn upstream(&self) -> SocketAddr {
        self.installation.address()
    }

    fn open(&self, through: SocketAddr, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        let mut options = self.installation.options_through(through);
        options.entity = self.entity.map(str::to_owned);
        options.http.answer_timeout = Duration::from_secs(1);
        options.http.retry_budget = Duration::from_secs(2);
        Box::pin(async move {
            Arc::new(OnTestClock::open(&self.installation, options, clock).await) as Arc<dyn Engine>
        })
    }
}

network_faults!(keys, InForge::new(None));
network_faults!(entity, InForge::new(Some("keyward")));
