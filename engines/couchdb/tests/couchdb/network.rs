//! What the engine shows when the network to the server fails.

use std::net::SocketAddr;
use std::sync::Arc;

use keyward_couchdb::CouchDb;
use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{NetworkPlace, TestClock, network_faults};

use crate::server::{Fresh, address};

struct OnServer(Fresh);

impl NetworkPlace for OnServer {
    fn upstream(&self) -> SocketAddr {
        address()
    }

    fn open(&self, through: SocketAddr, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            let options = self.0.impatient(through);
            Arc::new(CouchDb::open_with(options, clock).await.unwrap()) as Arc<dyn Engine>
        })
    }
}

network_faults!(couchdb, OnServer(Fresh::new()));
