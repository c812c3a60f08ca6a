//! Completing together what ends at about the same time.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use keyward_engine::Json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::{Attempt, Ended, Queue};

/// Completes messages, several in one commit where several wait.
#[derive(Debug)]
pub(super) struct Completions {
    asking: Asking,
    _task: JoinSet<()>,
}

/// Where completions are asked for.
#[derive(Debug, Clone)]
pub(super) struct Asking(mpsc::Sender<Asked>);

#[derive(Debug)]
struct Asked {
    completion: (Arc<Attempt>, Option<Json>),
    answer: oneshot::Sender<Option<Ended>>,
}

impl Completions {
    /// The most messages in one commit.
    const TOGETHER_MAX: usize = 64;
    /// How many commits are under way at once: while all are, completions gather.
    const UNDERWAY_MAX: usize = 2;

    pub fn start(queue: &Queue) -> Self {
        let (asking, asked) = mpsc::channel(Self::TOGETHER_MAX);
        let mut task = JoinSet::new();
        task.spawn(Self::run(queue.clone(), asked));
        Self { asking: Asking(asking), _task: task }
    }

    pub fn asking(&self) -> Asking {
        self.asking.clone()
    }

    async fn run(queue: Queue, mut asked: mpsc::Receiver<Asked>) {
        // A completion touches the row, its entry, the claim, and perhaps a job.
        let keys_max = queue.store().limits().commit_keys_max;
        let most = (keys_max / 4).clamp(1, Self::TOGETHER_MAX);
        let mut underway = FuturesUnordered::new();
        loop {
            let mut batch = Vec::new();
            tokio::select! {
                biased;
                Some(()) = underway.next(), if !underway.is_empty() => {}
                count = asked.recv_many(&mut batch, most),
                    if underway.len() < Self::UNDERWAY_MAX =>
                {
                    if count == 0 {
                        return;
                    }
                    underway.push(complete(&queue, batch));
                }
            }
        }
    }
}

async fn complete(queue: &Queue, batch: Vec<Asked>) {
    let (completions, answers): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|asked| (asked.completion, asked.answer)).unzip();
    let ends = Attempt::complete_together(queue, &completions).await;
    for (answer, ended) in answers.into_iter().zip(ends) {
        // Who asked may have been dropped since.
        let _ = answer.send(ended);
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
