//! Runs that nobody waits for any more.

use keyward_registry::{Progress, RunStatus, SyncOptions, Synced, Trigger};
use keyward_stores::{Place, on_engines};

use crate::fixture::Fixture;

// In memory a run never waits, so it cannot be dropped halfway.
on_engines!(embedded: Embedded, postgres: Postgres; a_run_that_was_dropped_is_finished_by_the_next);

async fn a_run_that_was_dropped_is_finished_by_the_next(place: Place) {
    let f = Fixture::new(place).await;
    for n in 0..120 {
        f.repository.write(&format!("{n}.md"), format!("# {n}\n"));
    }
    f.repository.commit("all");
    let (dropped, is_dropped) = tokio::sync::oneshot::channel();
    let dropped = std::sync::Mutex::new(Some(dropped));
    let seen = |progress| {
        if matches!(progress, Progress::Applying { .. })
            && let Some(dropped) = dropped.lock().unwrap().take()
        {
            dropped.send(()).unwrap();
        }
    };
    let options = SyncOptions::default();
    tokio::select! {
        biased;
        _ = is_dropped => {}
        synced = f.registry.sync(Trigger::Hand, &options, seen) => panic!("{synced:?}"),
    }
    let status = f.registry.status().await.unwrap();
    assert_eq!((status.last_run, status.last_commit, status.entries), (None, None, None));
    let applied = f.names().await.len();
    assert!((50..120).contains(&applied), "{applied}");
    // What was dropped gives its lock back by itself.
    let run = loop {
        match f.registry.sync(Trigger::Hand, &options, |_| ()).await.unwrap() {
            Synced::Done(run) => break run,
            Synced::Busy { .. } => tokio::task::yield_now().await,
            other => panic!("{other:?}"),
        }
    };
    // A batch that was on its way may have landed since.
    assert_eq!(run.status, RunStatus::Success);
    assert!(run.added <= 120 - applied as u64, "{run:?}");
    assert_eq!(f.names().await.len(), 120);
    assert_eq!(f.queued().await.len(), 120);
    let history = f.registry.runs(None, 10).await.unwrap().items;
    assert_eq!(history[1].status, RunStatus::Running);
}
