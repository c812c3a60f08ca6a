//! Requests to Firestore's REST API.

use std::time::Duration;

use bytes::Bytes;
use keyward_engine::{Error, ErrorKind, Result};
use keyward_http::header::AUTHORIZATION;
use keyward_http::{Effect, Method, Request, Url};
use serde::Serialize;

use crate::Options;
use crate::access::Access;
use crate::collection::Collection;
use crate::error::Refusal;

/// Sends requests about one collection. Clones share its connections.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: keyward_http::Client,
    access: Access,
    pub collection: Collection,
    /// `…/documents`: what reads and writes documents by their names is sent there.
    documents: Url,
    /// The document that the collection lies in, or the same: queries are sent there.
    parent: Url,
    /// `…/collectionGroups/ID/indexes`.
    pub indexes: Url,
}

/// What Firestore answered, if it carried the request out or refused it.
pub(crate) struct Answer {
    pub result: Result<Bytes, Refusal>,
    /// Whether an earlier attempt may have been carried out as well.
    pub resent: bool,
}

impl Client {
    /// A client for a collection. It looks for credentials, and asks Firestore nothing yet.
    pub async fn open(options: &Options) -> Result<Self> {
        let collection = options.collection()?;
        let service = options.service()?;
        let is_emulator = options.emulator.is_some();
        let access = Access::find(is_emulator, options.http.answer_timeout).await?;
        let http = keyward_http::Client::new("Firestore", options.http, !is_emulator)?;
        let at = |segments: &[&str]| {
            let mut url = service.clone();
            if let Ok(mut path) = url.path_segments_mut() {
                path.clear().extend(["v1", "projects", &collection.project, "databases"]);
                path.push(&collection.database).extend(segments);
            }
            url
        };
        let documents = at(&["documents"]);
        let parents = collection.parents().iter().map(String::as_str);
        let parent = at(&["documents"].into_iter().chain(parents).collect::<Vec<_>>());
        let indexes = at(&["collectionGroups", collection.id(), "indexes"]);
        Ok(Self { http, access, collection, documents, parent, indexes })
    }

    /// Sends a request about documents by their names, such as `commit`.
    pub async fn call(
        &self,
        method: &str,
        body: &impl Serialize,
        effect: Effect,
    ) -> Result<Answer> {
        let url = custom(&self.documents, method);
        self.send(Request::new(Method::POST, url, effect).json(json(body)?)).await
    }

    /// Sends a commit. No attempt begins later than `within` from now, if it is given.
    pub async fn commit(
        &self,
        body: &impl Serialize,
        effect: Effect,
        within: Option<Duration>,
    ) -> Result<Answer> {
        let url = custom(&self.documents, "commit");
        let request = Request::new(Method::POST, url, effect).json(json(body)?);
        self.send(match within {
            Some(within) => request.within(within),
            None => request,
        })
        .await
    }

    /// Reads documents by their names.
    pub async fn read(&self, method: &str, body: &impl Serialize) -> Result<Bytes> {
        let answer = self.call(method, body, Effect::Reads).await?;
        answer.result.map_err(|refusal| refusal.into_error("read from"))
    }

    /// Sends a query.
    pub async fn query(&self, method: &str, body: &impl Serialize) -> Result<Bytes> {
        let url = custom(&self.parent, method);
        let request = Request::new(Method::POST, url, Effect::Reads).json(json(body)?);
        let answer = self.send(request).await?;
        answer.result.map_err(|refusal| refusal.into_error("read from"))
    }

    /// Sends any request.
    pub async fn send(&self, request: Request) -> Result<Answer> {
        let request = request.header(AUTHORIZATION, self.access.header().await?);
        let response = self.http.send(request).await?;
        let result = match response.status.is_success() {
            true => Ok(response.body),
            false => Err(Refusal::read(response.status, &response.body)),
        };
        Ok(Answer { result, resent: response.resent })
    }
}

/// The URL of a method that is none of HTTP's.
fn custom(url: &Url, method: &str) -> Url {
    let mut url = url.clone();
    url.set_path(&format!("{}:{method}", url.path()));
    url
}

pub(crate) fn json(body: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(body).map_err(|error| {
        Error::new(
            ErrorKind::Internal,
            format!("a request to Firestore cannot be written: {error}"),
        )
    })
}
