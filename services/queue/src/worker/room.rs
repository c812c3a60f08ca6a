//! How many messages a worker may have in hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The places of a worker. A message has one from its claim until its handler has ended.
#[derive(Debug, Clone)]
pub(super) struct Room {
    free: Arc<Semaphore>,
    places: usize,
    /// How many messages are past their handlers, and not completed yet.
    ending: Arc<AtomicUsize>,
    ending_max: usize,
    freed: Arc<Notify>,
}

/// Places that are taken, until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Places(Option<OwnedSemaphorePermit>);

/// One of the messages past their handlers, until this is dropped.
#[derive(Debug)]
pub(super) struct Ending {
    ending: Arc<AtomicUsize>,
    /// Where too many are ending, a place is free only when its message is completed.
    _place: Option<Places>,
}

impl Room {
    /// Places for so many handlers, and so many messages ahead of them. Twice as many messages as there
    /// are handlers may be on their way out beside them: those of a commit under way, and the next.
    pub fn new(concurrency: usize, ahead: usize) -> Self {
        let places = concurrency.saturating_add(ahead).min(Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(places)),
            places,
            ending: Arc::default(),
            ending_max: concurrency.saturating_mul(2),
            freed: Arc::default(),
        }
    }

    /// Whether all places are free.
    pub fn is_empty(&self) -> bool {
        self.free() >= self.places
    }

    pub fn free(&self) -> usize {
        self.free.available_permits()
    }

    pub fn ending(&self) -> usize {
        self.ending.load(Ordering::SeqCst)
    }

    /// Takes the places that are free, at most so many.
    pub fn places(&self, most: usize) -> Places {
        let count = u32::try_from(self.free().min(most)).unwrap_or(u32::MAX);
        Places(self.free.clone().try_acquire_many_owned(count).ok())
    }

    /// No place is ever free again.
    pub fn close(&self) {
        self.free.close();
    }

    /// A handler has ended.
    pub fn end(&self, place: Places) -> Ending {
        let count = self.ending.fetch_add(1, Ordering::SeqCst);
        let place = (count >= self.ending_max).then_some(place);
        self.freed.notify_one();
        Ending { ending: self.ending.clone(), _place: place }
    }

    /// Waits for a handler to end.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.ending.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Places {
    pub fn count(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// One of them.
    pub fn one(&mut self) -> Self {
        Self(self.0.as_mut().and_then(|permit| permit.split(1)))
    }

    /// Frees all but so many.
    pub fn keep(&mut self, count: usize) {
        let surplus = self.count().saturating_sub(count);
        drop(self.0.as_mut().and_then(|permit| permit.split(surplus)));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn places_are_taken_until_they_are_dropped() {
        let room = Room::new(2, 3);
        assert!(room.is_empty());
        let mut places = room.places(4);
        assert_eq!((places.count(), room.free()), (4, 1));
        assert_eq!(room.places(9).count(), 1);
        let one = places.one();
        assert_eq!((one.count(), places.count(), room.free()), (1, 3, 1));
        places.keep(1);
        assert_eq!((places.count(), room.free()), (1, 3));
        drop(one);
        assert!(!room.is_empty());
        drop(places);
        assert!(room.is_empty());
    }

    #[test]
    fn no_place_is_made_of_nothing() {
        let room = Room::new(1, 0);
        let mut all = room.places(1);
        assert_eq!(room.places(1).count(), 0);
        let _one = all.one();
        assert_eq!(all.one().count(), 0);
        all.keep(5);
        assert_eq!((all.count(), room.free()), (0, 0));
    }

    #[test]
    fn a_place_is_free_when_its_handler_has_ended_unless_too_many_are_ending() {
        let room = Room::new(1, 0);
        let mut ending = Vec::new();
        for _ in 0..2 {
            ending.push(room.end(room.places(1)));
            assert_eq!(room.free(), 1);
            assert!(room.freed().now_or_never().is_some());
        }
        // A third keeps its place until its message is completed.
        let last = room.end(room.places(1));
        assert_eq!((room.ending(), room.free()), (3, 0));
        drop(ending);
        assert_eq!((room.ending(), room.free()), (1, 0));
        drop(last);
        assert_eq!((room.ending(), room.free()), (0, 1));
    }

    #[test]
    fn a_closed_room_takes_nothing_in() {
        let room = Room::new(2, 0);
        room.close();
        assert_eq!(room.places(1).count(), 0);
    }
}
