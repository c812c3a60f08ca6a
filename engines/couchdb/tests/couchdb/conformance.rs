//! The behaviours every engine must show.

use std::sync::Arc;

use keyward_couchdb::CouchDb;
use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{Place, TestClock, conformance};

use crate::server::Fresh;

struct OnServer(Fresh);

impl Place for OnServer {
    fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async {
            let engine = CouchDb::open_with(self.0.options(), clock).await.unwrap();
            Arc::new(engine) as Arc<dyn Engine>
        })
    }
}

conformance!(couchdb, OnServer(Fresh::new()));
