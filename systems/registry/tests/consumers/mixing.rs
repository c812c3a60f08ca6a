//! Syncs, workers and repairs, all at once.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use keyward_engine::Store;
use keyward_registry::{Registry, Repaired};
use keyward_testkit::{Faults, FaultyEngine, Rates, Replay, Test, seeds};
use serde_json::json;

use crate::fixture::{Fixture, read};

const NAMES: [&str; 5] = ["a", "b", "c", "가", "나"];

/// Changes the repository and syncs, a few times.
async fn change(fixture: &Fixture, registry: &Registry, rng: &mut Rng, replay: &mut Replay) {
    for round in 0..5 {
        for name in NAMES {
            let (path, file) = (format!("{name}.md"), fixture.repository.path().join(name));
            match rng.u8(..4) {
                0 if file.with_extension("md").exists() => drop(fixture.repository.remove(&path)),
                1 => drop(fixture.repository.write(&path, format!("# {name}\n\n{round}\n"))),
                2 => drop(fixture.repository.write(&path, "# Same\n")),
                _ => {}
            }
        }
        replay.step(format!("round {round}: {}", fixture.repository.git(&["status", "--short"])));
        fixture.sync(registry).await;
    }
}

/// What the registry says that an export has.
async fn expected(fixture: &Fixture, registry: &Registry) -> BTreeMap<String, String> {
    let mut expected = BTreeMap::new();
    for policy in registry.policies(None, 100).await.unwrap().items {
        let content = fixture.repository.git(&["cat-file", "blob", &policy.sha]);
        expected.insert(policy.policy_name, format!("sha: {}… {content}", policy.sha));
    }
    expected
}

/// What it has.
fn exported(fixture: &Fixture) -> BTreeMap<String, String> {
    let Ok(folders) = std::fs::read_dir(fixture.path("out/policies")) else {
        return BTreeMap::new();
    };
    folders
        .map(|folder| {
            let folder = folder.unwrap();
            let file = read(folder.path().join("policy.md"));
            let (front, content) = file.split_once("\n---\n\n").unwrap();
            let sha = front.lines().find(|line| line.starts_with("sha: ")).unwrap();
            // Of ids that look like numbers the quotes are left out.
            let sha = sha.replace(['"', '\''], "");
            let name = folder.file_name().into_string().unwrap();
            (name, format!("{sha}… {}", content.trim_end()))
        })
        .collect()
}

async fn mixed(seed: u64, rates: Rates, replay: &mut Replay) -> (Fixture, Registry) {
    let fixture = Fixture::new();
    let mut rng = Rng::with_seed(seed);
    let consumers = json!({ "site": { "export": fixture.place("out") } });
    let other = |at: u64| {
        let faults = Faults::seeded(seed.wrapping_mul(31).wrapping_add(at), rates);
        let engine = FaultyEngine::new(fixture.engine.clone(), faults);
        fixture.registry_in(Store::new(engine), consumers.clone())
    };
    let registry = fixture.registry(consumers.clone());
    let ended = Cell::new(false);
    let clock = &fixture.clock;
    let draining = async |at: u64| {
        while !ended.get() {
            // One that has crashed is followed by another.
            let worker = other(at);
            for pause in 0..5 {
                let _ = worker.drain().await;
                clock.advance(Duration::from_secs(pause * 8));
                tokio::task::yield_now().await;
            }
        }
    };
    let repairing = async {
        while !ended.get() {
            let _ = other(9).repair("site").await;
            tokio::task::yield_now().await;
        }
    };
    let changing = async {
        change(&fixture, &registry, &mut rng, replay).await;
        ended.set(true);
    };
    tokio::join!(changing, draining(1), draining(2), repairing);
    // What is left is worked off.
    for _ in 0..20 {
        registry.requeue_all().await.unwrap();
        if fixture.drain(&registry).await.left == 0 {
            return (fixture, registry);
        }
    }
    panic!("the queue does not empty");
}

const FAULTLESS: Test = Test {
    package: "keyward-registry",
    path: "consumers::mixing::an_export_ends_as_the_registry_is",
};

#[tokio::test]
async fn an_export_ends_as_the_registry_is() {
    for seed in seeds(6, 200) {
        let mut replay = Replay::new(FAULTLESS, seed);
        // Calls take their time, and in another order.
        let rates = Rates { delay: 0.5, delay_max: Duration::from_millis(3), ..Rates::default() };
        let (fixture, registry) = mixed(seed, rates, &mut replay).await;
        assert_eq!(exported(&fixture), expected(&fixture, &registry).await);
    }
}

const FAULTY: Test = Test {
    package: "keyward-registry",
    path: "consumers::mixing::an_export_whose_writers_died_is_put_right",
};

#[tokio::test]
async fn an_export_whose_writers_died_is_put_right() {
    for seed in seeds(6, 200) {
        let mut replay = Replay::new(FAULTY, seed);
        let rates = Rates { delay_max: Duration::from_millis(3), ..Rates::some() };
        let (fixture, registry) = mixed(seed, rates, &mut replay).await;
        registry.repair("site").await.unwrap();
        let expected = expected(&fixture, &registry).await;
        assert_eq!(exported(&fixture), expected);
        let again = registry.repair("site").await.unwrap();
        let checked = expected.len() as u64;
        assert_eq!(again, Repaired { checked, ..Repaired::default() });
    }
}
