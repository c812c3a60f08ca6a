//! What a task is doing, shown while it lasts.

use std::time::Duration;

use keyward::queue::Activity;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use crate::failure::{Failure, Result};
use crate::output::{Output, note};
use crate::progress::Progress;
use crate::queues::one_line;

/// Where no terminal shows it, what takes no longer than this is not told of.
const QUIET: Duration = Duration::from_secs(1);

/// Shows activities: on one line of a terminal, else a line each once it takes time.
pub struct Shown {
    bar: Progress,
    told: Option<String>,
    begun: Instant,
    notes: bool,
}

impl Shown {
    pub fn new(output: &Output) -> Self {
        let bar = Progress::telling(output);
        let notes = !output.json() && bar.is_hidden();
        Self { bar, told: None, begun: Instant::now(), notes }
    }

    /// It does this now.
    pub fn see(&mut self, activity: &Activity) {
        let Activity { name, detail, progress, .. } = activity;
        let what = match detail {
            Some(detail) => format!("{} {}", one_line(name), one_line(detail)),
            None => one_line(name),
        };
        let far = progress.as_ref().and_then(|progress| Some((progress.done, progress.total?)));
        match far {
            Some((done, total)) => self.bar.tell(&format!("{what}, {done} of {total}")),
            None => self.bar.tell(&what),
        }
        if self.notes && self.begun.elapsed() >= QUIET && self.told.as_ref() != Some(&what) {
            note(&what);
            self.told = Some(what);
        }
    }
}

/// What a task came to.
pub fn read<T: DeserializeOwned>(result: Value) -> Result<T> {
    serde_json::from_value(result)
        .map_err(|error| Failure::invalid(format!("the task's result cannot be read: {error}")))
}
