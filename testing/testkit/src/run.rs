use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;

use crate::seeds::Test;
use crate::{Place, Subject};

/// How long a behaviour may take, so that one that hangs is named.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs one behaviour on a new place: what [`conformance!`](crate::conformance) expands to.
pub fn run<P: Place, F: Future<Output = ()>>(
    test: Test,
    new_place: impl Fn() -> P + 'static,
    behaviour: impl FnOnce(Subject) -> F,
) {
    let new_place = Arc::new(move || Box::new(new_place()) as Box<dyn Place>);
    in_time(async {
        let subject = Subject::open(test, new_place).await;
        behaviour(subject).await;
    });
}

/// Runs a test to its end, or stops it when its time is up.
pub(crate) fn in_time(test: impl Future<Output = ()>) {
    // Several threads, so that races are real.
    let runtime = Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime can be made");
    let patience = if crate::deep() { PATIENCE * 20 } else { PATIENCE };
    let in_time = runtime.block_on(async { tokio::time::timeout(patience, test).await });
    assert!(in_time.is_ok(), "not done after {patience:?}");
}
