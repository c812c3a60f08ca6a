//! Processes killed while a store comes into being, is compacted or restored: before every single
//! thing that they do to their files, and at random moments.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use fastrand::Rng;
use keyward_embedded::{Options, compact, restore};
use keyward_engine::{Commit, ErrorKind, Store};
use keyward_testkit::{Replay, Test, seeds};

use crate::child::{self, block_on, key, open, put};
use crate::process::{self, Process, SIGKILL, tell};
use crate::shim::Shim;
use crate::workload::{self, Contents, State};

/// What may lie in the directory of a store that is open or was closed.
const FILES: [&str; 5] =
    ["data.mdb", "keyward.lock", "keyward.users", "keyward.writer", "lock.mdb"];

/// Runs a child again and again, in a new directory each time, killed before its first step, its
/// second, and so on, until it comes to its end. `check` looks at what each one left.
fn at_every_step(test: &str, prepare: impl Fn(&Path), check: impl Fn(&Path)) -> usize {
    let shim = Shim::build();
    let scratch = tempfile::tempdir().unwrap();
    for step in 0.. {
        let root = tempfile::tempdir().unwrap();
        prepare(root.path());
        let mut command = child::command(process::name(test), "", root.path());
        shim.load(&mut command, root.path(), &scratch.path().join("trace"), Some(step));
        let status = command.stdout(Stdio::null()).status().unwrap();
        assert!(status.success() || status.signal() == Some(SIGKILL), "step {step}: {status}");
        check(root.path());
        if status.success() {
            return step;
        }
    }
    unreachable!("there is no end of steps")
}

/// Opens what a killed process left, and sees that it can be used and that nothing lies around.
fn open_and_use(place: &Path) -> Store {
    let store = open(place);
    let outcome = block_on(store.commit(Commit::new().put(key("used"), put("1"))));
    assert!(outcome.unwrap().is_applied());
    let mut files = fs::read_dir(place).unwrap().map(|file| file.unwrap().file_name());
    assert!(files.all(|name| FILES.iter().any(|known| name == *known)));
    store
}

fn create(place: &Path) {
    process::begin();
    let store = open(place);
    block_on(store.put(key("made"), put("1"))).unwrap();
    tell("made");
}

#[test]
fn a_kill_at_any_step_of_creation_leaves_a_place_for_a_store() {
    const TEST: &str =
        "embedded::kill_steps::a_kill_at_any_step_of_creation_leaves_a_place_for_a_store";
    if let Some((_, directory)) = child::role() {
        return create(&directory.join("data"));
    }
    let steps = at_every_step(
        TEST,
        |_| {},
        |root| {
            let store = open_and_use(&root.join("data"));
            let made = block_on(store.get(&key("made"))).unwrap();
            let revision = block_on(store.stats()).unwrap().revision.unwrap().0;
            assert_eq!(revision, 1 + u64::from(made.is_some()));
        },
    );
    assert!(steps > 10, "{steps}");
}

#[test]
fn kills_during_creation_by_two_processes_leave_a_place_for_a_store() {
    const TEST: &str =
        "embedded::kill_steps::kills_during_creation_by_two_processes_leave_a_place_for_a_store";
    if let Some((_, directory)) = child::role() {
        return create(&directory);
    }
    for seed in seeds(20, 200) {
        let _replay = Replay::new(Test { package: "keyward-embedded", path: TEST }, seed);
        let mut rng = Rng::with_seed(seed);
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("data");
        let mut made = false;
        for _ in 0..2 {
            let start = || Process::start(&mut child::command(process::name(TEST), "", &place));
            let (one, other) = (start(), start());
            // Creation takes some milliseconds.
            one.run_on(Duration::from_micros(rng.u64(0..8_000)), |line| made |= line == "made");
            one.kill(|line| made |= line == "made");
            if rng.bool() {
                other.kill(|line| made |= line == "made");
            } else {
                assert!(other.finish(|line| made |= line == "made").success());
            }
        }
        let store = open_and_use(&place);
        let found = block_on(store.get(&key("made"))).unwrap().is_some();
        assert!(found || !made, "an acknowledged commit is gone");
    }
}

/// A closed store with some history, and what it holds.
fn furnish(place: &Path) -> (State, u64) {
    let store = open(place);
    let mut state = State::new();
    block_on(async {
        workload::write(store.clone(), 0, 0..40, |_| {}).await;
        let contents = Contents::read(&store).await.unwrap();
        for n in 0..40 {
            workload::apply(&mut state, &workload::commit(0, n), None);
        }
        (state, contents.revision)
    })
}

/// Copies the files of a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

fn holds(store: &Store, state: &State) -> u64 {
    let contents = block_on(Contents::read(store)).unwrap();
    contents.compare(state).unwrap();
    contents.revision
}

#[test]
fn a_kill_at_any_step_of_compaction_leaves_the_store_whole() {
    const TEST: &str =
        "embedded::kill_steps::a_kill_at_any_step_of_compaction_leaves_the_store_whole";
    if let Some((_, directory)) = child::role() {
        compact(&directory.join("data"), Options::default()).unwrap();
        return;
    }
    let original = tempfile::tempdir().unwrap();
    let (state, revision) = furnish(original.path());
    let steps = at_every_step(
        TEST,
        |root| copy(original.path(), &root.join("data")),
        |root| {
            let place = root.join("data");
            let store = open(&place);
            assert!(holds(&store, &state) >= revision);
            drop((store, open_and_use(&place)));
            compact(&place, Options::default()).unwrap();
            let used = Commit::new().put(key("used"), put("1"));
            let mut state = state.clone();
            workload::apply(&mut state, &used, None);
            assert!(holds(&open(&place), &state) > revision);
        },
    );
    assert!(steps > 5, "{steps}");
}

#[test]
fn a_restore_that_was_killed_at_any_step_can_be_made_again() {
    const TEST: &str =
        "embedded::kill_steps::a_restore_that_was_killed_at_any_step_can_be_made_again";
    let of = |root: &Path| (root.join("data"), root.join("backup.mdb"));
    if let Some((_, directory)) = child::role() {
        let (place, backup) = of(&directory);
        return restore(&place, &backup, Options::default()).unwrap();
    }
    let original = tempfile::tempdir().unwrap();
    let (place, backup) = of(original.path());
    let (state, revision) = furnish(&place);
    block_on(open(&place).backup(&backup)).unwrap();
    let steps = at_every_step(
        TEST,
        |root| {
            fs::copy(&backup, root.join("backup.mdb")).unwrap();
        },
        |root| {
            let (place, backup) = of(root);
            if let Err(error) = restore(&place, &backup, Options::default()) {
                // The one that was killed had come that far.
                assert_eq!(error.kind(), ErrorKind::Misplaced, "{error}");
                assert!(error.to_string().contains("already a store"), "{error}");
            }
            assert!(holds(&open(&place), &state) > revision + u64::from(u32::MAX));
            drop(open_and_use(&place));
        },
    );
    assert!(steps > 10, "{steps}");
}
