//! What a cache and a purge do, on every engine.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod claiming;
mod computing;
mod dropping;
mod failing;
mod processes;
mod purging;
mod redoing;
mod stalling;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use keyward_cache::{Cache, Fetch, Options, Source};
use keyward_engine::{Json, SystemClock};
use keyward_key::Key;
use keyward_stores::Place;

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn version(text: &str) -> Fetch {
    Fetch::of(Source::version(text))
}

/// A cache as one more process would open it.
async fn cache(place: &Place) -> Cache {
    Cache::new(place.store().await, SystemClock, Options::default()).unwrap()
}

/// Counts how often something ran.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn run(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// A function that counts its runs and gives a value.
    fn make(
        &self,
        value: &str,
    ) -> impl FnOnce() -> std::future::Ready<Result<Json, String>> + use<> {
        let (runs, value) = (self.clone(), json(value));
        move || {
            runs.run();
            std::future::ready(Ok(value))
        }
    }
}
