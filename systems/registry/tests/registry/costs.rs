//! What a run costs.

use keyward_registry::{SyncOptions, Synced, Trigger};
use keyward_testkit::{Call, FaultyEngine};

use crate::fixture::{Repository, counted, counts, sync};

/// How many calls were made since so many.
fn calls(engine: &FaultyEngine, since: u64) -> (usize, usize) {
    let trace = engine.trace();
    let since = usize::try_from(since).unwrap();
    let commits = trace[since..].iter().filter(|(call, _)| *call == Call::Commit).count();
    (trace.len() - since, commits)
}

fn filled(files: usize) -> Repository {
    let repository = Repository::new();
    for file in 0..files {
        repository.write(&format!("{}/p{file}.md", file % 7), format!("# {file}\n"));
    }
    repository.commit("all");
    repository
}

#[tokio::test]
async fn the_same_commit_is_no_work() {
    let repository = filled(120);
    let (registry, engine) = counted(&repository, &repository.beside("cache"));
    sync(&registry).await;
    let before = engine.calls();
    let synced = registry.sync(Trigger::Schedule, &SyncOptions::default(), |_| ()).await.unwrap();
    assert_eq!(synced, Synced::Unchanged { commit: repository.head() });
    let (all, commits) = calls(&engine, before);
    // The lock, taken and given back, and what the last run left.
    assert!(all <= 6 && commits == 2, "{all} calls, {commits} commits");
    assert_eq!(registry.runs(None, 10).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn one_changed_file_of_many_costs_as_one_of_few() {
    let mut costs = Vec::new();
    for files in [10, 700] {
        let repository = filled(files);
        let (registry, engine) = counted(&repository, &repository.beside("cache"));
        sync(&registry).await;
        repository.write("3/p3.md", "# 개정\n");
        repository.commit("one");
        let before = engine.calls();
        let run = sync(&registry).await;
        assert_eq!((counts(&run), run.blobs_read, run.whole), ((0, 1, 0), 1, false));
        costs.push(calls(&engine, before));
    }
    assert_eq!(costs[0], costs[1]);
    // The entry, its message, and that the registry is at the commit are one commit.
    assert_eq!(costs[0].1, 3, "{costs:?}");
}

#[tokio::test]
async fn policies_are_written_fifty_at_a_time() {
    let repository = filled(501);
    let (registry, engine) = counted(&repository, &repository.beside("cache"));
    let run = sync(&registry).await;
    assert_eq!((counts(&run), run.blobs_read), ((501, 0, 0), 501));
    let (_, commits) = calls(&engine, 0);
    // The place, the lock twice, the beginning and the end.
    assert_eq!(commits, 11 + 5);
}
