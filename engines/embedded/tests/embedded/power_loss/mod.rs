//! Power loss: a recorded trace of everything a process did to its files is cut at every point,
//! with what was not synced lost in many ways. Every image must open as a store with all
//! acknowledged commits, whole.

mod disk;
mod recording;
mod survey;
mod trace;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;

use keyward_embedded::{Options, compact, restore};
use keyward_engine::Durability;
use keyward_testkit::{Replay, Test, seeds};

use crate::child::{self, block_on, open};
use crate::process;
use crate::shim::Shim;
use crate::workload::{self, Ack};
use recording::{Part, Recording};
use survey::{History, Survey, Tried, acks};
use trace::Step;

/// Makes recordings and cuts them.
struct Cuts {
    test: Test,
    options: Options,
    shim: Shim,
    seed: u64,
    tried: Tried,
}

impl Cuts {
    /// Runs a test of this binary once for each seed, and says how much was tried.
    #[allow(clippy::print_stderr, reason = "says how much was tried")]
    fn for_each_seed(path: &'static str, options: Options, deep: u64, run: impl Fn(&mut Self)) {
        let test = Test { package: "keyward-embedded", path };
        let mut cuts =
            Self { test, options, shim: Shim::build(), seed: 0, tried: Tried::default() };
        for seed in seeds(1, deep) {
            let _replay = Replay::new(test, seed);
            cuts.seed = seed;
            run(&mut cuts);
        }
        eprintln!("{path}: {}", cuts.tried);
    }

    fn recording(&self) -> Recording {
        Recording::new(self.shim.clone(), self.test.path)
    }

    /// Cuts what was recorded after every step, beginning with `from`. The store held what `before`
    /// tells.
    fn cut(&mut self, recording: &Recording, from: usize, before: &[Ack]) {
        let steps = recording.steps();
        let history = History::new(before.iter().copied().chain(acks(&steps)));
        let (options, seed) = (self.options, self.seed);
        let survey = Survey { steps: &steps, history: &history, options, from, seed };
        if let Err(error) = survey.run(&mut self.tried) {
            panic!("{error}\n{}", recording.keep());
        }
    }
}

/// Cuts the work of several writers, before and after the store is closed and opened again.
fn cut_writers(path: &'static str, options: Options) {
    if let Some((_, directory)) = child::role() {
        let part = Part::new(directory, options);
        part.write(&[(0..1, 0..12), (1..5, 0..12)]);
        return part.write(&[(1..3, 12..24)]);
    }
    Cuts::for_each_seed(path, options, 5, |cuts| {
        let recording = cuts.recording();
        recording.play("write", None);
        cuts.cut(&recording, 0, &[]);
    });
}

#[test]
fn no_acknowledged_commit_is_lost_when_the_power_is_cut() {
    const TEST: &str = "embedded::power_loss::no_acknowledged_commit_is_lost_when_the_power_is_cut";
    cut_writers(TEST, Options::default());
}

#[test]
fn a_store_that_trims_its_log_survives_a_power_cut() {
    const TEST: &str = "embedded::power_loss::a_store_that_trims_its_log_survives_a_power_cut";
    cut_writers(TEST, Options { history: 16, ..Options::default() });
}

#[test]
fn a_relaxed_store_loses_only_its_latest_commits_when_the_power_is_cut() {
    const TEST: &str =
        "embedded::power_loss::a_relaxed_store_loses_only_its_latest_commits_when_the_power_is_cut";
    cut_writers(TEST, Options { durability: Durability::Relaxed, ..Options::default() });
}

#[test]
fn compaction_survives_a_power_cut() {
    const TEST: &str = "embedded::power_loss::compaction_survives_a_power_cut";
    let options = Options::default();
    if let Some((_, directory)) = child::role() {
        let part = Part::new(directory, options);
        part.write(&[(0..2, 0..12)]);
        compact(&part.store(), options).unwrap();
        return part.write(&[(0..2, 12..18)]);
    }
    Cuts::for_each_seed(TEST, options, 5, |cuts| {
        let recording = cuts.recording();
        recording.play("compact", None);
        cuts.cut(&recording, 0, &[]);
    });
}

#[test]
fn a_restore_survives_a_power_cut() {
    const TEST: &str = "embedded::power_loss::a_restore_survives_a_power_cut";
    let options = Options::default();
    if let Some((backup, directory)) = child::role() {
        let part = Part::new(directory, options);
        restore(&part.store(), Path::new(&backup), options).unwrap();
        return part.write(&[(1..2, 0..6)]);
    }
    let original = tempfile::tempdir().unwrap();
    let backup = original.path().join("backup.mdb");
    let before = Mutex::new(Vec::new());
    block_on(async {
        let store = open(original.path().join("data"));
        let hear = |ack| before.lock().unwrap().push(ack);
        workload::write(store.clone(), 0, 0..12, hear).await;
        store.backup(&backup).await.unwrap();
    });
    let before = before.into_inner().unwrap();
    Cuts::for_each_seed(TEST, options, 5, |cuts| {
        let recording = cuts.recording();
        recording.play(backup.to_str().unwrap(), None);
        cuts.cut(&recording, 0, &before);
        // A restored store is there with a revision of its own, or not at all.
        assert_eq!(cuts.tried.revisions.range(1..1 << 32).next(), None);
    });
}

/// One process is killed before each of its steps, another goes on, and then the power is cut: what
/// the second one builds upon must be as durable as what it does itself.
fn cut_after_kills(path: &'static str, prepare: bool, be_killed: impl Fn(&Path)) {
    let options = Options::default();
    if let Some((role, directory)) = child::role() {
        let part = Part::new(directory, options);
        return match role.as_str() {
            "prepare" => part.write(&[(0..1, 0..12)]),
            "be killed" => be_killed(&part.store()),
            _ => part.write(&[(1..2, 0..3)]),
        };
    }
    Cuts::for_each_seed(path, options, 3, |cuts| {
        for step in 0.. {
            let recording = cuts.recording();
            if prepare {
                recording.play("prepare", None);
            }
            let ended = recording.play("be killed", Some(step));
            let before = trace::read(&recording.trace());
            recording.play("go on", None);
            let all = trace::read(&recording.trace());
            let mut later = (before.len()..).zip(&all[before.len()..]);
            let first = later.find(|(_, step)| matches!(step, Step::Acknowledged(_))).unwrap().0;
            cuts.cut(&recording, first, &[]);
            if ended {
                break;
            }
        }
    });
}

#[test]
fn a_kill_during_creation_and_a_power_cut_later_lose_nothing() {
    const TEST: &str =
        "embedded::power_loss::a_kill_during_creation_and_a_power_cut_later_lose_nothing";
    cut_after_kills(TEST, false, |store| drop(open(store)));
}

#[test]
fn a_kill_during_compaction_and_a_power_cut_later_lose_nothing() {
    const TEST: &str =
        "embedded::power_loss::a_kill_during_compaction_and_a_power_cut_later_lose_nothing";
    cut_after_kills(TEST, true, |store| {
        compact(store, Options::default()).unwrap();
    });
}

/// Changes what an engine did, and says whether it did it at all.
type Carelessness = fn(&mut Step) -> bool;

/// Ways in which an engine could be careless, to see that it would be found out.
const CARELESS: [(&str, Carelessness); 4] = [
    ("data is not synced", |step| !is_sync_of(step, &["store/data.mdb"])),
    ("the last page of a commit is not synced", |step| {
        if let Step::Wrote { durable, .. } = step {
            *durable = false;
        }
        true
    }),
    ("names are not synced", |step| !is_sync_of(step, &["", "store"])),
    ("a new file is not synced", |step| {
        if let Step::Wrote { path, durable, .. } = step {
            *durable &= !path.contains("creating");
        }
        !is_sync_of(step, &["store/creating/data.mdb"])
    }),
];

fn is_sync_of(step: &Step, paths: &[&str]) -> bool {
    matches!(step, Step::Synced(path) if paths.contains(&path.as_str()))
}

#[test]
fn an_engine_that_does_not_sync_would_be_found_out() {
    const TEST: &str = "embedded::power_loss::an_engine_that_does_not_sync_would_be_found_out";
    let options = Options::default();
    if let Some((role, directory)) = child::role() {
        let Ok(number) = role.parse::<usize>() else {
            return Part::new(directory, options).write(&[(0..2, 0..12)]);
        };
        let steps = trace::read(&directory);
        let history = History::new(acks(&steps));
        let careless =
            steps.into_iter().filter_map(|mut step| CARELESS[number].1(&mut step).then_some(step));
        let steps: Vec<Step> = careless.collect();
        let survey = Survey { steps: &steps, history: &history, options, from: 0, seed: 0 };
        return drop(survey.run(&mut Tried::default()).unwrap_err());
    }
    let recording = Recording::new(Shim::build(), TEST);
    recording.play("write", None);
    recording.steps();
    for (number, (carelessness, _)) in CARELESS.iter().enumerate() {
        // In a process of its own, since LMDB may crash on an image that should never be.
        let mut command =
            child::command(process::name(TEST), &number.to_string(), &recording.trace());
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert!(status.success() || status.signal().is_some(), "not found out: {carelessness}");
    }
}
