//! What the engine says when the network to Firestore fails.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{BoxFuture, Engine};
use keyward_firestore::Firestore;
use keyward_testkit::{NetworkPlace, TestClock, network_faults};

use crate::emulator::Fresh;

struct BehindProxy(Fresh);

impl NetworkPlace for BehindProxy {
    fn upstream(&self) -> SocketAddr {
        self.0.address
    }

    fn open(&self, through: SocketAddr, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        let mut options = self.0.options_through(through);
        // The witness, who goes to the emulator itself, is not to fail on a slow machine.
        if through != self.0.address {
            options.http.answer_timeout = Duration::from_secs(1);
            options.http.retry_budget = Duration::from_secs(2);
        }
        Box::pin(async {
            let engine = Firestore::open_with(options, clock).await.unwrap();
            Arc::new(engine) as Arc<dyn Engine>
        })
    }
}

network_faults!(firestore, BehindProxy(Fresh::new()));
