//! What changes, told by the server for as long as anyone listens.

use std::time::Duration;

use futures_util::stream;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use keyward_engine::{BoxStream, Error, ErrorKind, Event, Result, Revision};
use keyward_key::KeyRange;
use tokio::time::{sleep, timeout};

use crate::events::Events;
use crate::{Connection, wire};

/// How often in a row a watch is begun again without being told anything.
const TRIES_MAX: u32 = 6;
/// The pause before it is begun again; twice as long each time.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// After how long without a sign of life the connection is taken for dead: servers give one every
/// quarter of a minute.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// What changes in a range. A connection that breaks is made again, and the watch goes on where it
/// was; only what cannot be mended so ends it.
pub(crate) fn watch(
    connection: Connection,
    path: String,
    range: KeyRange,
    since: Option<Revision>,
) -> BoxStream<'static, Result<Event>> {
    let watch = Watch { connection, path, range, since, told: None, heard: None, tries: 0 };
    Box::pin(stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        let event = watch.next().await;
        let ends = matches!(event, Err(_) | Ok(Event::TooOld { .. }));
        Some((event, (!ends).then_some(watch)))
    }))
}

struct Watch {
    connection: Connection,
    path: String,
    range: KeyRange,
    /// Where to go on.
    since: Option<Revision>,
    /// The point that was last told as reached.
    told: Option<Revision>,
    heard: Option<Heard>,
    /// How often it was begun since anything was told.
    tries: u32,
}

/// A connection on which events come.
struct Heard {
    body: Incoming,
    events: Events,
}

impl Watch {
    async fn next(&mut self) -> Result<Event> {
        loop {
            let event = match self.listen().await {
                Ok(event) => event?,
                Err(broken) => {
                    self.heard = None;
                    self.tries += 1;
                    if self.tries == TRIES_MAX {
                        return Err(broken);
                    }
                    sleep(PAUSE_MIN * (1 << self.tries)).await;
                    continue;
                }
            };
            self.tries = 0;
            match &event {
                Event::Changed { revision, .. } => self.since = Some(*revision),
                Event::Reached(revision) => {
                    self.since = Some(*revision);
                    // Every beginning tells where it begins; of a second one nobody need know.
                    if self.told.replace(*revision) == Some(*revision) {
                        continue;
                    }
                }
                Event::TooOld { .. } => {}
            }
            return Ok(event);
        }
    }

    /// The next event, or why it cannot be heard for now.
    async fn listen(&mut self) -> Result<Result<Event>> {
        let heard = match &mut self.heard {
            Some(heard) => heard,
            None => {
                let path = format!("{}{}", self.path, wire::watch(&self.range, self.since));
                match self.connection.listen(&path).await {
                    Ok(body) => self.heard.insert(Heard { body, events: Events::default() }),
                    Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                    Err(error) => return Ok(Err(error)),
                }
            }
        };
        loop {
            if let Some(event) = heard.events.next() {
                return Ok(event);
            }
            let broken = |why: &str| {
                Err(Error::new(ErrorKind::Unavailable, format!("the watch broke off: {why}")))
            };
            match timeout(SILENCE_MAX, heard.body.frame()).await {
                Err(_) => return broken("the server is silent"),
                Ok(None) => return broken("the server ended it"),
                Ok(Some(Err(error))) => return broken(&error.to_string()),
                Ok(Some(Ok(frame))) => {
                    if let Some(bytes) = frame.data_ref() {
                        heard.events.push(bytes);
                    }
                }
            }
        }
    }
}
