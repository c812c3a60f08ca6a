//! What changed since gives the same plan as the whole tree.

use fastrand::Rng;
use keyward_registry::SyncOptions;
use keyward_testkit::{Replay, Test, seeds};

use crate::fixture::{Repository, counted};

const PATH: &str = "registry::since::what_changed_since_gives_the_plan_of_the_whole";

#[tokio::test]
async fn what_changed_since_gives_the_plan_of_the_whole() {
    let (mut since, mut steps) = (0, 0);
    for seed in seeds(12, 300) {
        let mut replay = Replay::new(Test { package: "keyward-registry", path: PATH }, seed);
        let mut rng = Rng::with_seed(seed);
        let repository = Repository::new();
        let (registry, _) = counted(&repository, &repository.beside("cache"));
        for _ in 0..10 {
            for _ in 0..rng.usize(1..5) {
                replay.step(change(&repository, &mut rng));
            }
            repository.commit("changes");
            let options = SyncOptions { full: false, allow_mass_delete: true };
            let some = registry.plan(&options).await.unwrap();
            let all = registry.plan(&SyncOptions { full: true, ..options }).await.unwrap();
            assert!(all.whole);
            assert_eq!(some.steps, all.steps);
            assert_eq!(some.problems, all.problems);
            assert_eq!(some.entries, all.entries);
            since += usize::from(!some.whole);
            steps += some.steps.len();
            registry.sync(keyward_registry::Trigger::Hand, &options, |_| ()).await.unwrap();
        }
    }
    assert!((since > 0 && steps > 0) || std::env::var_os("KEYWARD_SEED").is_some());
}

/// Some change to the working tree, as text.
fn change(repository: &Repository, rng: &mut Rng) -> String {
    let folders = ["", "a/", "b/", "a/deep/er/", "README/"];
    let names = ["x", "y", "z", "é", "e\u{301}", "README", "w"];
    let mut path = || format!("{}{}.md", rng.choice(folders).unwrap(), rng.choice(names).unwrap());
    let (one, other) = (path(), path());
    let is_there = repository.path().join(&one).symlink_metadata().is_ok();
    match rng.u8(..10) {
        0..=2 if is_there => {
            repository.remove(&one);
            format!("remove {one}")
        }
        3..=4 if is_there && one != other => {
            repository.rename(&one, &other);
            format!("rename {one} to {other}")
        }
        5 if !is_there => {
            repository.write(&one, b"\xff");
            format!("break {one}")
        }
        6 => {
            if is_there {
                repository.remove(&one);
            }
            repository.link(&one, "elsewhere.md");
            format!("link {one}")
        }
        _ => {
            if repository.path().join(&one).is_symlink() {
                repository.remove(&one);
            }
            let content = rng.u8(..4);
            repository.write(&one, format!("# Title {content}\n"));
            format!("write {content} to {one}")
        }
    }
}
