//! The database's own feed of changes, `_changes`.

use std::time::Duration;

use keyward_changes::{ChangeSource, Slice, Wait};
use keyward_engine::{Change, ChangeKind, Result};
use keyward_http::{Request, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::{Client, escaped, read};
use crate::document::key_of;
use crate::error::unreadable;

/// How many changes are read at once.
const ROWS_MAX: usize = 1_000;
/// How long the server waits for a change before it answers that there is none. By default it waits a minute at most.
const WAIT_MAX: Duration = Duration::from_secs(25);

/// Follows `_changes`. A place in it is a sequence, which is opaque: a cluster gives each reader other ones.
pub(crate) struct Feed {
    client: Client,
    /// How long to let the server wait: less than an answer may take.
    wait: Duration,
}

#[derive(Debug, Deserialize)]
struct Changes<'a> {
    results: Vec<ChangedRow>,
    #[serde(borrow)]
    last_seq: &'a RawValue,
    /// How many changes follow. Servers that count them tell it.
    #[serde(default)]
    pending: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct ChangedRow {
    id: String,
    #[serde(default)]
    deleted: bool,
}

impl Feed {
    pub fn new(client: Client, answer_timeout: Duration) -> Self {
        Self { client, wait: WAIT_MAX.min(answer_timeout / 2) }
    }

    fn url(&self, since: &str, limit: usize, wait: Wait) -> Url {
        let feed = match wait {
            Wait::No => "normal".to_owned(),
            Wait::ForChanges => format!("longpoll&timeout={}", self.wait.as_millis()),
        };
        let query = format!("since={}&limit={limit}&feed={feed}", escaped(since));
        self.client.url(&["_changes"], &query)
    }

    /// The changes after a sequence; `None` if CouchDB does not take the sequence.
    async fn ask(&self, since: &str, limit: usize, wait: Wait) -> Result<Option<Response>> {
        let response = self.client.send(Request::get(self.url(since, limit, wait))).await?;
        match response.status {
            StatusCode::OK => Ok(Some(response)),
            StatusCode::BAD_REQUEST => Ok(None),
            _ => Err(self.client.refused(&response)),
        }
    }
}

impl ChangeSource for Feed {
    type Position = String;

    async fn now(&self) -> Result<String> {
        let response = self.ask("now", 1, Wait::No).await?;
        let response = response.ok_or_else(|| unreadable("_changes", "it refused since=now"))?;
        sequence(read::<Changes<'_>>("_changes", &response)?.last_seq)
    }

    async fn read(&self, after: &String, wait: Wait) -> Result<Slice<String>> {
        // The database was replaced, or the sequence is of another server.
        let Some(response) = self.ask(after, ROWS_MAX, wait).await? else { return Ok(Slice::Lost) };
        let found: Changes<'_> = read("_changes", &response)?;
        let more = match found.pending {
            Some(pending) => pending > 0,
            None => found.results.len() == ROWS_MAX,
        };
        let changes = found.results.into_iter().filter_map(|row| {
            let kind = if row.deleted { ChangeKind::Deleted } else { ChangeKind::Put };
            Some(Change { key: key_of(&row.id)?, kind })
        });
        let changes = changes.collect();
        Ok(Slice::Changes { changes, position: sequence(found.last_seq)?, more })
    }
}

/// A sequence as `since` takes it: text without its quotes, or a number.
fn sequence(seq: &RawValue) -> Result<String> {
    let text = seq.get();
    match text.starts_with('"') {
        true => serde_json::from_str(text).map_err(|error| unreadable("_changes", error)),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_sent_as_it_came() {
        for (seq, since) in
            [("\"23-g1AA+/=\"", "23-g1AA+/="), ("7", "7"), ("[1,\"a\"]", "[1,\"a\"]")]
        {
            let raw = RawValue::from_string(seq.to_owned()).unwrap();
            assert_eq!(sequence(&raw).unwrap(), since);
        }
        let options = crate::Options::from_url("couchdb://u:p@h/db".parse().unwrap()).unwrap();
        let feed = Feed::new(Client::new(&options).unwrap(), Duration::from_secs(10));
        let url = feed.url("23-g1AA+/=", 7, Wait::ForChanges);
        let query = "since=23-g1AA%2B%2F%3D&limit=7&feed=longpoll&timeout=5000";
        assert_eq!((url.path(), url.query()), ("/db/_changes", Some(query)));
    }
}
