//! Runs that follow what was pushed.

use keyward::Coded;
use keyward::registry::{Synced, Trigger};

use super::Kept;
use crate::background::Pauses;
use crate::lifecycle::Lifecycle;

/// How often a run that fails is tried. Then the next push, or the schedule, begins one.
const FAILURES_MAX: u32 = 5;

impl Kept {
    /// Runs after each push, until the server stops. Pushes that come while a run is under way are
    /// followed by one more.
    pub(super) async fn run_after_pushes(&self, lifecycle: &Lifecycle) {
        loop {
            tokio::select! {
                biased;
                () = lifecycle.stopping() => return,
                () = self.pushed.notified() => {}
            }
            let mut pauses = Pauses::default();
            let mut failures = 0;
            loop {
                match self.run(Trigger::Webhook).await {
                    Ok(Synced::Busy { .. }) => {}
                    Err(error) if error.retryable() && failures + 1 < FAILURES_MAX => failures += 1,
                    Ok(_) => break,
                    Err(error) => {
                        let registry = self.registry.name();
                        tracing::warn!(registry, %error, "a run after a push failed");
                        break;
                    }
                }
                if !pauses.wait(lifecycle).await {
                    return;
                }
            }
        }
    }
}
