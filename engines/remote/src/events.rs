//! Server-sent events, taken out of a stream of bytes.

use keyward_engine::{Change, ChangeKind, Event, Result, Revision};
use keyward_key::Key;
use serde::Deserialize;

use crate::error::{Problem, of_watch, senseless};

/// The largest event: the keys of a whole commit.
const EVENT_BYTES_MAX: usize = 128 << 20;

/// Bytes that came and are not told yet.
#[derive(Debug, Default)]
pub(crate) struct Events {
    buffer: Vec<u8>,
    /// Up to where the buffer was looked through.
    seen: usize,
    kind: String,
    data: String,
}

impl Events {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event, if there is one.
    pub fn next(&mut self) -> Option<Result<Event>> {
        if self.buffer.len() + self.data.len() > EVENT_BYTES_MAX {
            return Some(Err(senseless("an event is too large")));
        }
        while let Some(end) = self.buffer[self.seen..].iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=self.seen + end).collect();
            self.seen = 0;
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                let (kind, data) = (std::mem::take(&mut self.kind), std::mem::take(&mut self.data));
                if !kind.is_empty() {
                    return Some(read(&kind, &data));
                }
            } else if let Some((name, value)) = line.split_once(':') {
                let value = value.strip_prefix(' ').unwrap_or(value);
                match name {
                    "event" => self.kind = value.to_owned(),
                    "data" => self.data.push_str(value),
                    // A sign of life, or the id, which the data tells as well.
                    _ => {}
                }
            }
        }
        self.seen = self.buffer.len();
        None
    }
}

#[derive(Deserialize)]
struct Reached {
    revision: u64,
}

#[derive(Deserialize)]
struct TooOld {
    earliest: u64,
}

#[derive(Deserialize)]
struct Changed {
    revision: u64,
    changes: Vec<ChangedKey>,
}

#[derive(Deserialize)]
struct ChangedKey {
    key: String,
    kind: String,
}

fn read(kind: &str, data: &str) -> Result<Event> {
    match kind {
        "reached" => {
            let Reached { revision } = serde_json::from_str(data).map_err(senseless)?;
            Ok(Event::Reached(Revision(revision)))
        }
        "changed" => {
            let Changed { revision, changes } = serde_json::from_str(data).map_err(senseless)?;
            let changes = changes.iter().map(change).collect::<Result<_>>()?;
            Ok(Event::Changed { revision: Revision(revision), changes })
        }
        "too-old" => {
            let TooOld { earliest } = serde_json::from_str(data).map_err(senseless)?;
            Ok(Event::TooOld { earliest: Revision(earliest) })
        }
        "problem" => Err(of_watch(serde_json::from_str::<Problem>(data).map_err(senseless)?)),
        other => Err(senseless(format!("there is no event {other:?}"))),
    }
}

fn change(changed: &ChangedKey) -> Result<Change> {
    let kind = match changed.kind.as_str() {
        "put" => ChangeKind::Put,
        "deleted" => ChangeKind::Deleted,
        "expired" => ChangeKind::Expired,
        other => return Err(senseless(format!("there is no change {other:?}"))),
    };
    let key = Key::parse(&changed.key).map_err(|error| senseless(error.message()))?;
    Ok(Change { key, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_wherever_the_bytes_are_cut() {
        let text = "event: reached\nid: 3\ndata: {\"revision\":3}\n\n:\n\n\
                    event: changed\ndata: {\"revision\":4,\"changes\":[{\"key\":\"ü:1\",\"kind\":\"put\"}]}\n\n";
        for size in 1..text.len() {
            let mut events = Events::default();
            let mut found = Vec::new();
            for part in text.as_bytes().chunks(size) {
                events.push(part);
                while let Some(event) = events.next() {
                    found.push(event.unwrap());
                }
            }
            let key = Key::parse("ü:1").unwrap();
            let changes = vec![Change { key, kind: ChangeKind::Put }];
            let changed = Event::Changed { revision: Revision(4), changes };
            assert_eq!(found, [Event::Reached(Revision(3)), changed], "{size}");
        }
    }
}
