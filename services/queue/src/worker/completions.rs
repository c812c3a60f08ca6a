//! Completing together what ends at about the same time, and taking more in the same commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use keyward_engine::Json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::room::{Places, Room};
use super::seen::Seen;
use crate::exchange::Completion;
use crate::look::Candidate;
use crate::{Attempt, Ended, Queue};

/// Completes messages, several in one commit where several wait; and where messages have been seen,
/// takes as many as there is room for along with them.
#[derive(Debug)]
pub(super) struct Completions {
    asking: Asking,
    /// What was taken, with the places it is for.
    taken: mpsc::UnboundedReceiver<(Vec<Attempt>, Places)>,
    /// How many commits take something that has not been told yet.
    taking: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

/// Where completions are asked for.
#[derive(Debug, Clone)]
pub(super) struct Asking(mpsc::Sender<Asked>);

#[derive(Debug)]
struct Asked {
    completion: Completion,
    answer: oneshot::Sender<Option<Ended>>,
}

/// What the commits are made with.
#[derive(Debug)]
struct Counter {
    queue: Queue,
    room: Room,
    seen: Arc<Seen>,
    taking: Arc<AtomicUsize>,
    /// Bounded by the room.
    taken: mpsc::UnboundedSender<(Vec<Attempt>, Places)>,
}

impl Completions {
    /// The most messages in one commit.
    const TOGETHER_MAX: usize = 64;
    /// How often others get a turn to end before a commit is sent.
    const TURNS: usize = 32;

    pub fn start(queue: &Queue, room: &Room, seen: &Arc<Seen>) -> Self {
        let (asking, asked) = mpsc::channel(Self::TOGETHER_MAX);
        let (telling, taken) = mpsc::unbounded_channel();
        let taking = Arc::new(AtomicUsize::new(0));
        let counter = Counter {
            queue: queue.clone(),
            room: room.clone(),
            seen: seen.clone(),
            taking: taking.clone(),
            taken: telling,
        };
        let mut task = JoinSet::new();
        task.spawn(async move { counter.serve(asked).await });
        Self { asking: Asking(asking), taken, taking, _task: task }
    }

    pub fn asking(&self) -> Asking {
        self.asking.clone()
    }

    /// What was taken along with completions, as soon as something was tried. Never ends; dropping
    /// the future loses nothing.
    pub async fn taken(&mut self) -> (Vec<Attempt>, Places) {
        match self.taken.recv().await {
            Some(taken) => {
                self.taking.fetch_sub(1, Ordering::SeqCst);
                taken
            }
            None => std::future::pending().await,
        }
    }

    /// Whether something may be taken that [`taken`](Self::taken) has yet to tell.
    pub fn is_taking(&self) -> bool {
        self.taking.load(Ordering::SeqCst) > 0
    }
}

impl Counter {
    async fn serve(&self, mut asked: mpsc::Receiver<Asked>) {
        // A completion touches the row, its entry, the claim, and perhaps a job.
        let keys_max = self.queue.store().limits().commit_keys_max;
        let most = (keys_max / 4).clamp(1, Completions::TOGETHER_MAX);
        let mut batch = Vec::new();
        while asked.recv_many(&mut batch, most).await > 0 {
            self.gather(&mut asked, &mut batch, most).await;
            // One commit at a time: meanwhile completions gather.
            self.complete(std::mem::take(&mut batch), keys_max).await;
        }
    }

    /// Lets others end that are about to: where handlers take no time, those whose messages came with
    /// the last commit. Otherwise half of the places would be taken by turns.
    async fn gather(&self, asked: &mut mpsc::Receiver<Asked>, batch: &mut Vec<Asked>, most: usize) {
        for _ in 0..Completions::TURNS {
            while batch.len() < most
                && let Ok(another) = asked.try_recv()
            {
                batch.push(another);
            }
            if batch.len() >= most || self.room.is_empty() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn complete(&self, batch: Vec<Asked>, keys_max: usize) {
        let (completions, answers): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|asked| (asked.completion, asked.answer)).unzip();
        // Of each message a claim touches up to six keys, and the pause.
        let fitting = keys_max.saturating_sub(4 * completions.len() + 1) / 6;
        let (picked, places) = self.pick(fitting).await;
        let tries = !picked.is_empty();
        let exchanged = self.queue.exchange(&completions, picked).await;
        if tries && exchanged.attempts.is_empty() {
            // Others have been there.
            self.seen.forget();
        }
        if tries {
            // If the worker is gone, so is everything it has in hand.
            let _ = self.taken.send((exchanged.attempts, places));
        }
        for (answer, ended) in answers.into_iter().zip(exchanged.ends) {
            // Who asked may have been dropped since.
            let _ = answer.send(ended);
        }
    }

    /// Picks of what was seen as much as there is room for.
    async fn pick(&self, most: usize) -> (Vec<Candidate>, Places) {
        // Before there are places to take: who stops waits for what is told of them.
        self.taking.fetch_add(1, Ordering::SeqCst);
        let mut places = self.room.places(most);
        let picked = self.seen.pick(&self.queue, places.count()).await;
        places.keep(picked.len());
        if picked.is_empty() {
            self.taking.fetch_sub(1, Ordering::SeqCst);
        }
        (picked, places)
    }
}

impl Asking {
    /// Completes a message with others. `None`: it is to be completed by itself.
    pub async fn complete(&self, attempt: &Arc<Attempt>, result: &Option<Json>) -> Option<Ended> {
        let (answer, answered) = oneshot::channel();
        let completion = (attempt.clone(), result.clone());
        self.0.send(Asked { completion, answer }).await.ok()?;
        answered.await.ok().flatten()
    }
}
