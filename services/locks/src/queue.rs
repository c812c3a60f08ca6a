//! Standing in line: woken when the catalog changes, where the engine can tell, and after ever
//! longer pauses where it cannot.

use std::time::Duration;

use futures_util::StreamExt;
use keyward_engine::{BoxStream, Commit, Event, Result as StoreResult};
use keyward_key::KeyRange;
use tokio::time::{Instant, sleep_until};

use crate::catalog::Asked;
use crate::{Result, Root};

/// A place in line.
pub(crate) struct Line {
    /// The name of the waiter's lease.
    place: Option<u64>,
    renewed: Instant,
    beat: u64,
    ears: Ears,
}

/// How a waiter hears of changes.
enum Ears {
    /// Somebody tells. The watch begins with the first wait, and again after it broke.
    Told { watch: Option<BoxStream<'static, StoreResult<Event>>>, again_at: Instant },
    /// Nobody tells: looks, after pauses.
    Looks { pause: Duration, left: u32, at: Option<Instant> },
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    ToLook,
    ToRenew,
}

/// The pauses between looks, where nobody tells of changes.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
const LOOKS_MAX: u32 = 15;

/// How long after a watch broke the next one begins.
const WATCH_AGAIN: Duration = Duration::from_secs(1);

impl Line {
    pub fn new(root: &Root) -> Self {
        let now = Instant::now();
        let ears = match root.shared.can_watch() {
            true => Ears::Told { watch: None, again_at: now },
            false => Ears::Looks { pause: PAUSE_MIN, left: LOOKS_MAX, at: None },
        };
        Self { place: None, renewed: now, beat: 0, ears }
    }

    pub fn place(&self) -> Option<u64> {
        self.place
    }

    /// Stands at a place, since a commit that was sent then.
    pub fn joined(&mut self, place: u64, sent: Instant) {
        self.place = Some(place);
        self.renewed = sent;
    }

    /// The place that the catalog says.
    pub fn stands_at(&mut self, place: u64) {
        self.place = Some(place);
    }

    /// Whether all looks are used up.
    pub fn is_tired(&self) -> bool {
        matches!(self.ears, Ears::Looks { left: 0, .. })
    }

    /// Waits until something may have changed, or something is due.
    pub async fn wait(
        &mut self,
        root: &Root,
        asked: &Asked,
        look_at: Option<Instant>,
        ends_at: Option<Instant>,
    ) -> Woken {
        let renew_at = self.renewed + asked.ttl / 3;
        let due = [look_at, ends_at].into_iter().flatten().fold(renew_at, Instant::min);
        let told = match &mut self.ears {
            Ears::Told { watch, again_at } => {
                let again = Some(*again_at).filter(|at| watch.is_none() && *at > Instant::now());
                let due = again.map_or(due, |again| due.min(again));
                told_by(root, watch, again_at, due).await
            }
            Ears::Looks { pause, left, at } => {
                let look_at =
                    *at.get_or_insert_with(|| Instant::now() + root.shared.jittered(*pause));
                sleep_until(look_at.min(due)).await;
                if look_at <= due {
                    *left -= 1;
                    *pause = (*pause * 2).min(PAUSE_MAX);
                    *at = None;
                }
                look_at <= due
            }
        };
        if !told && Instant::now() >= renew_at { Woken::ToRenew } else { Woken::ToLook }
    }

    /// Shows a sign of life.
    pub async fn renew(&mut self, root: &Root, asked: &Asked) -> Result<()> {
        let sent = Instant::now();
        self.beat += 1;
        match self.place {
            Some(place) if root.shared.is_atomic() => {
                let lease = root.shared.lease(self.beat, asked.ttl);
                // Whoever thought this waiter dead took it out of the catalog: the next look finds
                // that, and what is put here in vain expires or is taken away with the next place.
                let _ = root
                    .shared
                    .store
                    .commit(Commit::new().put(root.lease_key(place), lease))
                    .await?;
            }
            _ => {
                root.beat(&asked.id).await?;
            }
        }
        self.renewed = sent;
        Ok(())
    }
}

/// Waits for a change of the catalog until something is due; says whether there may have been one.
async fn told_by(
    root: &Root,
    watch: &mut Option<BoxStream<'static, StoreResult<Event>>>,
    again_at: &mut Instant,
    due: Instant,
) -> bool {
    if watch.is_none() && Instant::now() >= *again_at {
        let range = KeyRange::exactly(root.key());
        let mut begun = root.shared.store.watch(range, None);
        *again_at = Instant::now() + WATCH_AGAIN;
        // What happened before its first event is seen by looking after it.
        let first = tokio::select! {
            biased;
            first = begun.next() => first,
            () = sleep_until(due) => None,
        };
        if let Some(Ok(Event::Reached(_) | Event::Changed { .. })) = first {
            *watch = Some(begun);
        }
        return true;
    }
    let Some(watching) = watch else {
        sleep_until(due).await;
        return false;
    };
    loop {
        let event = tokio::select! {
            biased;
            event = watching.next() => event,
            () = sleep_until(due) => return false,
        };
        match event {
            Some(Ok(Event::Reached(_))) => {}
            Some(Ok(Event::Changed { .. })) => return true,
            Some(Ok(Event::TooOld { .. }) | Err(_)) | None => {
                *watch = None;
                return true;
            }
        }
    }
}
