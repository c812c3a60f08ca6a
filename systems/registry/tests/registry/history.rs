//! What runs did, and how a registry stands.

use std::time::Duration;

use keyward_registry::{Run, RunStatus, SyncOptions, Synced, Trigger};
use keyward_stores::{Place, on_engines, on_every_engine};

use crate::fixture::Fixture;

on_every_engine!(
    runs_are_told_newest_first_in_pages,
    a_status_tells_the_last_run_and_what_waits,
    progress_is_told_in_order,
    what_is_counted_is_shown,
);
// The server of PostgreSQL goes by its own clock.
on_engines!(memory_by_time: Memory, embedded_by_time: Embedded; runs_are_kept_for_their_time);

async fn runs_are_told_newest_first_in_pages(place: Place) {
    let f = Fixture::new(place).await;
    let mut done: Vec<Run> = Vec::new();
    for n in 0..5 {
        f.place.clock().advance(Duration::from_secs(60));
        f.repository.write(&format!("{n}.md"), "# N\n");
        f.repository.commit("one more");
        let trigger = [Trigger::Hand, Trigger::Schedule, Trigger::Webhook][n % 3];
        let synced = f.registry.sync(trigger, &SyncOptions::default(), |_| ()).await.unwrap();
        let Synced::Done(run) = synced else { panic!("{synced:?}") };
        assert_eq!(run.trigger, trigger);
        done.insert(0, run);
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = f.registry.runs(after.as_deref(), 2).await.unwrap();
        assert!(page.items.len() <= 2);
        seen.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, done);
    assert_eq!(f.registry.run(&done[3].id).await.unwrap().as_ref(), Some(&done[3]));
    assert_eq!(f.registry.run("000000000000000-1").await.unwrap(), None);
    assert_eq!(f.registry.run("nothing").await.unwrap(), None);
    assert!(f.registry.runs(Some("nothing"), 2).await.is_err());
}

async fn a_status_tells_the_last_run_and_what_waits(place: Place) {
    let f = Fixture::new(place).await;
    let status = f.registry.status().await.unwrap();
    assert_eq!((status.last_run, status.last_commit, status.running), (None, None, None));
    f.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    let run = f.push().await;
    let status = f.registry.status().await.unwrap();
    let last = status.last_run.unwrap();
    assert_eq!((last.status, last.added, last.total_processed), (RunStatus::Success, 2, 2));
    assert_eq!((last.commit_sha, status.last_commit), (run.commit.clone(), run.commit));
    assert_eq!((status.entries, status.queue.ready.count), (Some(2), 2));
    assert_eq!(status.running, None);
}

async fn progress_is_told_in_order(place: Place) {
    use keyward_registry::Progress::{Applying, Comparing, Fetching, Reading};

    let f = Fixture::new(place).await;
    for n in 0..60 {
        f.repository.write(&format!("{n}.md"), "# N\n");
    }
    f.repository.commit("all");
    let seen = std::sync::Mutex::new(Vec::new());
    let told = |progress| seen.lock().unwrap().push(progress);
    f.registry.sync(Trigger::Hand, &SyncOptions::default(), told).await.unwrap();
    assert_eq!(
        seen.into_inner().unwrap(),
        [
            Fetching,
            Comparing { compared: 0 },
            Reading { read: 50, total: 60 },
            Reading { read: 60, total: 60 },
            Applying { applied: 50, total: 60 },
            Applying { applied: 60, total: 60 },
        ]
    );
}

async fn what_is_counted_is_shown(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n").write("bad.md", b"\xff");
    f.push().await;
    f.repository.git(&["branch", "-m", "main", "other"]);
    f.repository.git(&["symbolic-ref", "HEAD", "refs/heads/gone"]);
    f.fails().await;
    let metrics = f.registry.metrics();
    assert_eq!((metrics.partial.get(), metrics.failed.get(), metrics.added.get()), (1, 1, 1));
    assert_eq!(metrics.blobs_read.get(), 2);
}

async fn runs_are_kept_for_their_time(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n");
    let first = f.push().await;
    f.place.clock().advance(Duration::from_secs(89 * 86_400));
    f.repository.write("b.md", "# B\n");
    let second = f.push().await;
    f.place.clock().advance(Duration::from_secs(2 * 86_400));
    let kept = f.registry.runs(None, 10).await.unwrap().items;
    assert_eq!(kept, [second]);
    assert_eq!(f.registry.run(&first.id).await.unwrap(), None);
}
