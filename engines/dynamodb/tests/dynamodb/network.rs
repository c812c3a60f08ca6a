//! What the engine says when the network fails.

use std::net::SocketAddr;
use std::sync::Arc;

use keyward_dynamodb::DynamoDb;
use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{NetworkPlace, TestClock, network_faults};
use tokio::sync::OnceCell;

use crate::server::{Fresh, address};

struct InTable(OnceCell<Fresh>);

impl NetworkPlace for InTable {
    fn upstream(&self) -> SocketAddr {
        address()
    }

    fn open(&self, through: SocketAddr, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            let fresh = self.0.get_or_init(Fresh::store_table).await;
            let engine = DynamoDb::open_with(fresh.impatient(through), clock).await;
            Arc::new(engine.unwrap()) as Arc<dyn Engine>
        })
    }
}

network_faults!(faults, InTable(OnceCell::new()));
