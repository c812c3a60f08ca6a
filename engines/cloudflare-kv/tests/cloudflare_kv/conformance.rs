//! The behaviours every engine must show.

use std::sync::Arc;

use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{Place, TestClock, conformance};

use crate::server::{Namespace, address};

struct InNamespace(Arc<Namespace>);

impl Place for InNamespace {
    fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async {
            let engine = self.0.engine(self.0.options(address()), clock).await;
            Arc::new(engine) as Arc<dyn Engine>
        })
    }
}

conformance!(cloudflare_kv, InNamespace(Arc::new(Namespace::late())));
