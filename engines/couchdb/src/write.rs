//! One write of one document, and what became of it.

use std::time::Duration;

use keyward_engine::{ErrorKind, Result};
use keyward_http::{Effect, Method, Request, Response, StatusCode};
use serde::Deserialize;

use crate::client::{Client, encode, read};
use crate::document::{Content, new_mark};
use crate::error::{is_absent, unreadable};
use crate::rev::Rev;

/// How a write ended.
pub(crate) enum Written {
    /// The document has this revision.
    Applied(Rev),
    /// The document is not at the revision that was to be replaced.
    Conflicted,
}

#[derive(Debug, Deserialize)]
struct Answer {
    rev: String,
}

/// One of the last revisions of a document, with those before it.
#[derive(Debug, Deserialize)]
struct Leaf {
    ok: Option<LeafDocument>,
}

#[derive(Debug, Deserialize)]
struct LeafDocument {
    #[serde(rename = "_rev")]
    rev: String,
    #[serde(rename = "_revisions")]
    revisions: Revisions,
    #[serde(default)]
    mark: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Revisions {
    start: u64,
    ids: Vec<String>,
}

impl LeafDocument {
    /// Whether it directly follows a revision.
    fn follows(&self, base: &Rev) -> bool {
        let parent = self.revisions.ids.get(1).map(|id| format!("{}-{id}", base.generation()));
        self.revisions.start == base.generation() + 1 && parent.as_deref() == Some(base.as_str())
    }
}

/// Replaces a revision of a document, or creates it.
///
/// With a revision to replace, the request is sent again after a lost answer: whichever arrives first is carried out,
/// and the others conflict, as the revision is no longer the last one. Without, a second request could create the
/// document anew after somebody deleted it in between; so it is sent once, and read afterwards. `within` is for how
/// long the revision to replace has not expired: after it, the write is not sent again.
pub(crate) async fn write(
    client: &Client,
    id: &str,
    base: Option<&Rev>,
    content: &Content,
    within: Duration,
) -> Result<Written> {
    let mark = new_mark()?;
    let effect = if base.is_some() { Effect::WritesOnce } else { Effect::Writes };
    let request = Request::new(Method::PUT, client.url(&[id], ""), effect).within(within);
    let sent = client.send(request.json(encode(&content.body(base, &mark))?)).await;
    let unknown = match sent {
        Ok(response) => match response.status {
            StatusCode::CREATED | StatusCode::OK => return applied(&response),
            // A cluster has it in fewer copies than it should: it may still lose to another write.
            StatusCode::ACCEPTED => unknown("it is in fewer copies than CouchDB's quorum"),
            StatusCode::CONFLICT if !response.resent => return Ok(Written::Conflicted),
            StatusCode::CONFLICT => unknown("an answer was lost, and the document changed since"),
            _ if response.resent => unknown("an answer was lost, and the next one was a refusal"),
            _ => return Err(client.refused(&response)),
        },
        // What was sent several times was read about by the last conflict; nothing more is known now.
        Err(error) if base.is_some() || error.kind() != ErrorKind::OutcomeUnknown => {
            return Err(error);
        }
        Err(error) => error,
    };
    match settled(client, id, base, &mark).await {
        Ok(Some(written)) => Ok(written),
        Ok(None) | Err(_) => Err(unknown),
    }
}

fn unknown(why: &str) -> keyward_engine::Error {
    let message = format!("it is not known whether CouchDB carried out the write: {why}");
    keyward_engine::Error::new(ErrorKind::OutcomeUnknown, message)
}

fn applied(response: &Response) -> Result<Written> {
    let answer: Answer = read("a write", response).map_err(|error| unknown(error.message()))?;
    let rev = Rev::parse(&answer.rev);
    rev.map(Written::Applied).ok_or_else(|| {
        unknown(unreadable("a write", format!("the _rev {:?}", answer.rev)).message())
    })
}

/// What became of a write whose answer was lost, if the document tells.
async fn settled(
    client: &Client,
    id: &str,
    base: Option<&Rev>,
    mark: &str,
) -> Result<Option<Written>> {
    let url = client.url(&[id], "open_revs=all&revs=true");
    let response = client.send(Request::get(url)).await?;
    if is_absent(&response) {
        return Ok(None);
    }
    if response.status != StatusCode::OK {
        return Err(client.refused(&response));
    }
    let leaves: Vec<Leaf> = read("open_revs", &response)?;
    for leaf in leaves.into_iter().filter_map(|leaf| leaf.ok) {
        if leaf.mark.as_deref() == Some(mark) {
            return Ok(Rev::parse(&leaf.rev).map(Written::Applied));
        }
        // Somebody else replaced that revision, so this write never will.
        if base.is_some_and(|base| leaf.follows(base)) {
            return Ok(Some(Written::Conflicted));
        }
    }
    Ok(None)
}
