//! A network that fails.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{NetworkPlace, TestClock, network_faults};

use crate::installation::{Installation, OnTestClock};

struct InForge(Installation);

impl NetworkPlace for InForge {
    fn upstream(&self) -> SocketAddr {
        self.0.address()
    }

    fn open(&self, through: SocketAddr, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        let mut options = self.0.options_through(through);
        options.http.answer_timeout = Duration::from_secs(1);
        options.http.retry_budget = Duration::from_secs(2);
        Box::pin(async move {
            Arc::new(OnTestClock::open(&self.0, options, clock).await) as Arc<dyn Engine>
        })
    }
}

network_faults!(forge, InForge(Installation::new()));
