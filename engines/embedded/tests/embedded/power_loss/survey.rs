//! Cutting the power at every point of a trace, and looking at what is left.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use fastrand::Rng;
use keyward_embedded::{Embedded, Options};
use keyward_engine::{Commit, Durability, Store};
use tempfile::TempDir;

use super::disk::{Disk, Loss};
use super::trace::Step;
use crate::child::{block_on, key, put};
use crate::workload::{self, Ack, Checked, Contents, State};

/// Where the store lies in the directory that is watched.
pub const STORE: &str = "store";
const DATA: &str = "store/data.mdb";

/// Which commits were made at which revision.
#[derive(Default)]
pub struct History {
    states: BTreeMap<u64, State>,
}

impl History {
    /// The history that some acknowledgements tell, if they are all there are.
    pub fn new(acks: impl IntoIterator<Item = Ack>) -> Self {
        let mut acks: Vec<Ack> = acks.into_iter().collect();
        // Commits that changed nothing share the revision of another.
        acks.sort_by_key(|ack| (ack.revision, ack.writer, ack.n));
        let mut state = State::new();
        let mut states = BTreeMap::from([(0, State::new())]);
        for ack in acks {
            let commit = workload::commit(ack.writer, ack.n);
            workload::apply(&mut state, &commit, Some(ack.revision));
            states.insert(ack.revision, state.clone());
        }
        Self { states }
    }

    /// What the store held at a revision.
    fn at(&self, revision: u64) -> &State {
        self.states.range(..=revision).next_back().unwrap().1
    }
}

/// The acknowledgements in a trace.
pub fn acks(steps: &[Step]) -> impl Iterator<Item = Ack> {
    steps.iter().filter_map(|step| match step {
        Step::Acknowledged(ack) => Some(*ack),
        _ => None,
    })
}

/// A trace to be cut.
pub struct Survey<'t> {
    pub steps: &'t [Step],
    pub history: &'t History,
    pub options: Options,
    /// The first step after which to cut.
    pub from: usize,
    pub seed: u64,
}

/// What was tried.
#[derive(Default)]
pub struct Tried {
    pub writes: usize,
    pub syncs: usize,
    pub cuts: usize,
    pub images: usize,
    /// The revisions that were found.
    pub revisions: BTreeSet<u64>,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, syncs, cuts, images, .. } = self;
        write!(f, "{writes} writes, {syncs} syncs, {cuts} cuts, {images} images")
    }
}

impl Survey<'_> {
    /// Cuts after every step, and checks every image.
    pub fn run(&self, tried: &mut Tried) -> Checked<()> {
        let mut disk = Disk::new();
        let mut promised = Promise::default();
        for (at, step) in self.steps.iter().enumerate() {
            disk.take(step);
            promised.take(step);
            tried.writes += usize::from(matches!(step, Step::Wrote { .. }));
            tried.syncs += usize::from(step.makes_durable());
            let next = self.steps.get(at + 1);
            if at < self.from || matches!(next, Some(Step::Acknowledged(_))) {
                // At the next step, more is asked of the same disk.
                continue;
            }
            tried.cuts += 1;
            for (lost, mut loss) in self.losses(at, &disk) {
                let image = in_memory();
                disk.write_image(image.path(), &mut loss);
                let found = self.check(&image.path().join(STORE), &promised);
                let found = found.map_err(|error| self.explain(at, lost, &error))?;
                tried.revisions.insert(found);
                tried.images += 1;
            }
        }
        Ok(())
    }

    /// What to lose after a step.
    fn losses(&self, at: usize, disk: &Disk) -> Vec<(&'static str, Loss)> {
        let mut losses = vec![("everything", Loss::Everything)];
        if !disk.is_synced() {
            losses.push(("nothing", Loss::Nothing));
        }
        // Before a sync most is at stake.
        let before_sync = self.steps.get(at + 1).is_none_or(Step::makes_durable);
        let random = match (keyward_testkit::deep(), before_sync && !disk.is_synced()) {
            (_, false) => 1,
            (false, true) => 4,
            (true, true) => 40,
        };
        let seeds = (0..random).map(|n| (self.seed << 32) + ((at as u64) << 8) + n);
        losses.extend(seeds.map(|seed| ("something", Loss::Some(Rng::with_seed(seed)))));
        losses
    }

    /// Opens what is left, compares it with the history and goes on with it. Gives its revision.
    fn check(&self, store: &Path, promised: &Promise) -> Checked<u64> {
        let least = match self.options.durability {
            Durability::Relaxed => promised.synced,
            _ => promised.acknowledged,
        };
        if promised.acknowledged > 0 && !store.join("data.mdb").exists() {
            return Err("the store is gone".to_owned());
        }
        let engine = Embedded::open(store, self.options).map_err(|error| error.to_string())?;
        if store.join("creating").exists() {
            return Err("what was being created was left".to_owned());
        }
        let store = Store::new(engine);
        block_on(async {
            let contents = Contents::read(&store).await?;
            let found = contents.revision;
            if found < least {
                return Err(format!("revision {found} is left, and {least} was acknowledged"));
            }
            let mut state = self.history.at(found).clone();
            contents.compare(&state)?;
            // What was left must also carry what comes after.
            let commit = Commit::new().put(key("after"), put("1"));
            let after = store.commit(commit.clone()).await.map_err(|error| error.to_string())?;
            assert!(after.is_applied());
            workload::apply(&mut state, &commit, None);
            Contents::read(&store).await?.compare(&state)?;
            Ok(found)
        })
    }

    fn explain(&self, at: usize, lost: &str, error: &str) -> String {
        let first = at.saturating_sub(20);
        let steps = self.steps[first..=at].iter().enumerate();
        let steps: String = steps.map(|(n, step)| format!("  {}: {step}\n", first + n)).collect();
        format!("{error}\nwhen {lost} unsynced is lost after\n{steps}(seed {})", self.seed)
    }
}

/// A directory for an image: in memory where that is possible, since the checks sync a lot.
fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// What must be there after a cut.
#[derive(Default)]
struct Promise {
    /// The latest revision that was acknowledged.
    acknowledged: u64,
    /// The same at the last sync of the data file: all that a relaxed store promises.
    synced: u64,
}

impl Promise {
    fn take(&mut self, step: &Step) {
        match step {
            Step::Acknowledged(ack) => self.acknowledged = self.acknowledged.max(ack.revision),
            Step::Synced(path) if path == DATA => self.synced = self.acknowledged,
            _ => {}
        }
    }
}
