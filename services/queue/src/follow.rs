//! Following a job.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::stream::{StreamExt, select};
use keyward_engine::{BoxStream, Event};
use keyward_key::KeyRange;

use crate::job::{self, Record};
use crate::{Jobs, Result, Status};

/// Waits between looks where an engine cannot watch.
const POLL_MIN: Duration = Duration::from_millis(100);
const POLL_MAX: Duration = Duration::from_secs(5);

/// Somebody who follows a job.
pub(crate) struct Watching {
    jobs: Jobs,
    id: String,
    events: Option<BoxStream<'static, keyward_engine::Result<Event>>>,
    last: Option<Status>,
    queue: Option<String>,
    pause: Duration,
}

impl Watching {
    pub fn new(jobs: Jobs, id: &str) -> Self {
        Self { jobs, id: id.to_owned(), events: None, last: None, queue: None, pause: POLL_MIN }
    }

    /// The next status that is another than the last; `None` if the job is not there.
    pub async fn next(&mut self) -> Result<Option<Status>> {
        loop {
            if self.queue.is_none() {
                let key = job::key(&self.id)?;
                let Some(entry) = self.jobs.store().get(&key).await? else { return Ok(None) };
                self.queue = Some(Record::decode(&key, &entry)?.queue);
            }
            let can_watch = self.jobs.store().capabilities().watch.is_supported();
            if can_watch && self.events.is_none() {
                self.events = begin_watch(self.jobs.clone(), &self.id, self.queue.clone()).await?;
            }
            let Some(job) = self.jobs.get(&self.id).await? else { return Ok(None) };
            if self.last.as_ref() != Some(&job.status) {
                self.last = Some(job.status.clone());
                self.pause = POLL_MIN;
                return Ok(Some(job.status));
            }
            self.wait().await;
        }
    }

    /// Until something may have changed.
    async fn wait(&mut self) {
        if let Some(events) = &mut self.events {
            // A change that was not told, such as an entry that expired, is seen in the end.
            let event = tokio::time::timeout(POLL_MAX * 6, events.next());
            match event.await {
                Err(_) | Ok(Some(Ok(Event::Changed { .. } | Event::Reached(_)))) => return,
                Ok(_) => self.events = None,
            }
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(POLL_MAX);
    }
}

/// Watches the record and the row; both streams have begun when this returns, so that what is read
/// next misses nothing.
async fn begin_watch(
    jobs: Jobs,
    id: &str,
    queue: Option<String>,
) -> Result<Option<BoxStream<'static, keyward_engine::Result<Event>>>> {
    let Some(queue) = queue else { return Ok(None) };
    let queue = jobs.queue(&queue)?;
    let ranges = [job::key(id)?, queue.inner.places.row(id)];
    let mut begun = VecDeque::new();
    for key in &ranges {
        let mut events = jobs.store().watch(KeyRange::exactly(key), None);
        match events.next().await {
            Some(Ok(Event::Reached(_))) => begun.push_back(events),
            _ => return Ok(None),
        }
    }
    let both = begun.pop_front().zip(begun.pop_front());
    Ok(both.map(|(one, other)| Box::pin(select(one, other)) as BoxStream<'static, _>))
}
