//! What must hold when the network fails.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use keyward_cloudflare_kv::Options;
use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{NetworkPlace, TestClock, network_faults};

use crate::server::{Namespace, address};

struct BehindNetwork(Arc<Namespace>);

impl NetworkPlace for BehindNetwork {
    fn upstream(&self) -> SocketAddr {
        address()
    }

    fn open(&self, through: SocketAddr, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            let mut options: Options = self.0.options(through);
            options.http.answer_timeout = Duration::from_secs(1);
            options.http.retry_budget = Duration::from_secs(2);
            Arc::new(self.0.engine(options, clock).await) as Arc<dyn Engine>
        })
    }
}

network_faults!(faults, BehindNetwork(Arc::new(Namespace::late())));
