//! A bound on what is fetched: packs tell nobody beforehand how large they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

use gix::odb::pack::bundle::write::ProgressId;
use gix::progress::{
    Count, Id, MessageLevel, NestedProgress, Progress, Step, StepShared, UNKNOWN, Unit,
};

use super::interrupt::Interrupt;

/// Counts the bytes of a pack as they arrive, and gives the fetch up when they are too many.
#[derive(Clone)]
pub(super) struct Meter {
    counted: Arc<Counted>,
    counts: bool,
}

struct Counted {
    bytes: AtomicU64,
    bytes_max: u64,
    is_over: AtomicBool,
    interrupt: Arc<Interrupt>,
}

impl Meter {
    pub(super) fn new(bytes_max: u64, interrupt: Arc<Interrupt>) -> Self {
        let (bytes, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let counted = Arc::new(Counted { bytes, bytes_max, is_over, interrupt });
        Self { counted, counts: false }
    }

    /// Whether there were too many.
    pub(super) fn is_over(&self) -> bool {
        self.counted.is_over.load(SeqCst)
    }
}

impl Count for Meter {
    fn set(&self, _step: Step) {}

    fn step(&self) -> Step {
        0
    }

    fn inc_by(&self, step: Step) {
        let Counted { bytes, bytes_max, is_over, interrupt } = &*self.counted;
        if self.counts && bytes.fetch_add(step as u64, SeqCst) + step as u64 > *bytes_max {
            is_over.store(true, SeqCst);
            interrupt.set();
        }
    }

    fn counter(&self) -> StepShared {
        Arc::new(AtomicUsize::default())
    }
}

impl Progress for Meter {
    fn init(&mut self, _max: Option<Step>, _unit: Option<Unit>) {}

    fn set_name(&mut self, _name: String) {}

    fn name(&self) -> Option<String> {
        None
    }

    fn id(&self) -> Id {
        UNKNOWN
    }

    fn message(&self, _level: MessageLevel, _message: String) {}
}

impl NestedProgress for Meter {
    type SubProgress = Self;

    fn add_child(&mut self, _name: impl Into<String>) -> Self {
        Self { counted: self.counted.clone(), counts: false }
    }

    fn add_child_with_id(&mut self, _name: impl Into<String>, id: Id) -> Self {
        let counts = id == Id::from(ProgressId::ReadPackBytes);
        Self { counted: self.counted.clone(), counts }
    }
}
