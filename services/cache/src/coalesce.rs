//! One process asks once: callers who want the same thing at the same time share one request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyward_key::Key;
use tokio::sync::watch;

use crate::Source;

/// What callers want: a key, made of a source.
type Wanted = (Key, Source);

/// Requests under way in this process, each with where its answer will be told.
#[derive(Debug)]
pub(crate) struct UnderWay<T>(Arc<Mutex<HashMap<Wanted, watch::Receiver<Option<T>>>>>);

/// How a caller takes part.
pub(crate) enum Part<T> {
    /// It asks, and tells the others.
    Lead(Lead<T>),
    /// It is told.
    Follow(Follow<T>),
}

/// The one who asks. Dropped without an answer, another one takes its place.
pub(crate) struct Lead<T> {
    wanted: Wanted,
    all: UnderWay<T>,
    tell: watch::Sender<Option<T>>,
}

/// One who waits.
pub(crate) struct Follow<T>(watch::Receiver<Option<T>>);

impl<T> UnderWay<T> {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// Joins a request that is under way, or begins it.
    pub fn join(&self, key: &Key, source: &Source) -> Part<T> {
        let wanted = (key.clone(), source.clone());
        let mut all = self.all();
        // A leader that is gone can still stand here for a moment.
        if let Some(told) = all.get(&wanted).filter(|told| told.has_changed().is_ok()) {
            return Part::Follow(Follow(told.clone()));
        }
        let (tell, told) = watch::channel(None);
        all.insert(wanted.clone(), told);
        drop(all);
        Part::Lead(Lead { wanted, all: Self(self.0.clone()), tell })
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Wanted, watch::Receiver<Option<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Lead<T> {
    pub fn tell(self, answer: T) {
        self.tell.send_replace(Some(answer));
    }
}

impl<T> Drop for Lead<T> {
    fn drop(&mut self) {
        let mut all = self.all.all();
        let is_own = |told: &watch::Receiver<Option<T>>| told.same_channel(&self.tell.subscribe());
        if all.get(&self.wanted).is_some_and(is_own) {
            all.remove(&self.wanted);
        }
    }
}

impl<T: Clone> Follow<T> {
    /// The answer, or nothing if the leader gave up.
    pub async fn answer(mut self) -> Option<T> {
        let answer = self.0.wait_for(Option::is_some).await.ok()?;
        answer.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::parse("a").unwrap()
    }

    fn lead(all: &UnderWay<u8>) -> Lead<u8> {
        match all.join(&key(), &Source::Constant) {
            Part::Lead(lead) => lead,
            Part::Follow(_) => panic!("nobody leads"),
        }
    }

    fn follow(all: &UnderWay<u8>) -> Follow<u8> {
        match all.join(&key(), &Source::Constant) {
            Part::Follow(follow) => follow,
            Part::Lead(_) => panic!("somebody leads"),
        }
    }

    #[tokio::test]
    async fn those_who_join_get_the_leaders_answer() {
        let all = UnderWay::new();
        let first = lead(&all);
        let (one, two) = (follow(&all), follow(&all));
        assert!(matches!(all.join(&key(), &Source::version("2")), Part::Lead(_)));
        first.tell(7);
        assert_eq!((one.answer().await, two.answer().await), (Some(7), Some(7)));
        lead(&all);
    }

    #[tokio::test]
    async fn when_the_leader_gives_up_another_leads() {
        let all = UnderWay::new();
        let (first, one) = (lead(&all), follow(&all));
        drop(first);
        assert_eq!(one.answer().await, None);
        let second = lead(&all);
        let two = follow(&all);
        second.tell(8);
        assert_eq!(two.answer().await, Some(8));
        assert!(all.all().is_empty());
    }
}
