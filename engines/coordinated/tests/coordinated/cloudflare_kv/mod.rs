//! An embedded coordinator over Workers KV, whose reads are a minute late.

mod adopting;
mod binding;
mod conformance;
#[path = "../../../../cloudflare-kv/tests/cloudflare_kv/server.rs"]
#[allow(dead_code, reason = "the tests of the engine use more of it")]
mod server;
mod worker;

use std::path::Path;
use std::sync::Arc;

use keyward_coordinated::{Coordinated, Options};
use keyward_embedded::Embedded;
use keyward_engine::{Engine, Result};
use keyward_testkit::TestClock;

use server::Namespace;

/// A namespace with a coordinator in a directory. `through` is the address of the server or of a proxy.
async fn open(
    namespace: &Arc<Namespace>,
    through: std::net::SocketAddr,
    directory: &Path,
    clock: &TestClock,
) -> Coordinated {
    try_open(namespace, through, directory, clock).await.unwrap()
}

async fn try_open(
    namespace: &Arc<Namespace>,
    through: std::net::SocketAddr,
    directory: &Path,
    clock: &TestClock,
) -> Result<Coordinated> {
    let values = namespace.engine(namespace.options(through), clock.clone()).await;
    let options = keyward_embedded::Options::default();
    let coordinator: Arc<dyn Engine> =
        Arc::new(Embedded::open_with(directory, options, clock.clone()).unwrap());
    let options = Options::default();
    Coordinated::open(Arc::new(values), coordinator, options, clock.clone()).await
}
