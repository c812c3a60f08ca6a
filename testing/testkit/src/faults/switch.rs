use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Something that is on or off, and that tasks wait for. They are woken in the order in which they
/// began to wait, so that a run by a seed is the same every time.
#[derive(Default)]
pub(super) struct Switch {
    on: AtomicBool,
    turned: Notify,
}

impl Switch {
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::SeqCst)
    }

    pub fn turn(&self, on: bool) {
        self.on.store(on, Ordering::SeqCst);
        self.turned.notify_waiters();
    }

    /// Waits until it is on, or off.
    pub async fn is(&self, on: bool) {
        loop {
            let turned = self.turned.notified();
            if self.is_on() == on {
                return;
            }
            turned.await;
        }
    }
}
