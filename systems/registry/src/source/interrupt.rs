//! Giving up what blocks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

type HangUp = Box<dyn FnOnce() + Send>;

/// Tells those who work on a thread of their own that nobody waits for them any more.
#[derive(Default)]
pub(super) struct Interrupt {
    flag: AtomicBool,
    lines: Mutex<Vec<HangUp>>,
}

impl Interrupt {
    /// What is looked at between steps.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// How to end a wait that does not look: called once, when it is given up, or at once if it has been.
    pub(super) fn on_line(&self, hang_up: impl FnOnce() + Send + 'static) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if self.flag.load(Ordering::SeqCst) {
            hang_up();
        } else {
            lines.push(Box::new(hang_up));
        }
    }

    /// Gives it up.
    pub(super) fn set(&self) {
        self.flag.store(true, Ordering::SeqCst);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for hang_up in lines.drain(..) {
            hang_up();
        }
    }
}

/// One who waits. Dropped, as a future is that nobody polls any more, it interrupts the work.
#[derive(Default)]
pub(super) struct Waiting(Arc<Interrupt>);

impl Waiting {
    pub(super) fn interrupt(&self) -> Arc<Interrupt> {
        self.0.clone()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set();
    }
}
