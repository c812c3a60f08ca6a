use std::fmt;
use std::fmt::Write as _;

use keyward_engine::{Error, ErrorKind, Result};
use keyward_http::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use keyward_http::{Effect, Method, Request, Response, Url};
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::error::{refused, unreadable};

/// Sends requests to one database of CouchDB.
#[derive(Clone)]
pub(crate) struct Client {
    http: keyward_http::Client,
    server: Url,
    /// The database's name as a path: `/name`.
    path: String,
    authorization: Option<HeaderValue>,
    shown: String,
}

impl Client {
    pub fn new(options: &Options) -> Result<Self> {
        let is_encrypted = options.server.scheme() == "https";
        let http = keyward_http::Client::new("CouchDB", options.http, is_encrypted)?;
        let authorization = options.credentials.as_ref().map(|(user, password)| {
            let login = data_encoding::BASE64.encode(format!("{user}:{password}").as_bytes());
            let mut value = HeaderValue::from_str(&format!("Basic {login}"))
                .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
            value.set_sensitive(true);
            Ok::<_, Error>(value)
        });
        Ok(Self {
            http,
            server: options.server.clone(),
            path: format!("/{}", escaped(&options.database)),
            authorization: authorization.transpose()?,
            shown: options.shown(),
        })
    }

    /// The database, as it may stand in a message.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What is below the database, by segments of a path that are escaped here. None is the database itself.
    pub fn url(&self, segments: &[&str], query: &str) -> Url {
        let mut path = self.path.clone();
        for segment in segments {
            path.push('/');
            path.push_str(&escaped(segment));
        }
        let mut url = self.server.clone();
        url.set_path(&path);
        url.set_query((!query.is_empty()).then_some(query));
        url
    }

    pub async fn send(&self, mut request: Request) -> Result<Response> {
        request = request.header(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        self.http.send(request).await
    }

    /// Sends a body that asks for something.
    pub async fn ask(
        &self,
        segments: &[&str],
        query: &(impl Serialize + ?Sized),
    ) -> Result<Response> {
        let request = Request::new(Method::POST, self.url(segments, ""), Effect::Reads);
        self.send(request.json(encode(query)?)).await
    }

    /// The error of a response that says that nothing was done.
    pub fn refused(&self, response: &Response) -> Error {
        refused(response, &self.shown)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("database", &self.shown).finish_non_exhaustive()
    }
}

/// A body to send.
pub(crate) fn encode(body: &(impl Serialize + ?Sized)) -> Result<Vec<u8>> {
    serde_json::to_vec(body).map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))
}

/// Reads the body of a response.
pub(crate) fn read<'r, T: Deserialize<'r>>(what: &str, response: &'r Response) -> Result<T> {
    serde_json::from_slice(&response.body).map_err(|error| unreadable(what, error))
}

/// A segment of a path, or a value of a query. All but the plainest characters are escaped: CouchDB takes `+` for a space.
pub(crate) fn escaped(segment: &str) -> String {
    let mut escaped = String::with_capacity(segment.len() + 16);
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_one_segment_of_the_path() {
        let options = Options::from_url("couchdb://u:p@h/a%2Fb%2Bc".parse().unwrap()).unwrap();
        let client = Client::new(&options).unwrap();
        for (segments, path) in [
            (&["a+b c/d%?#"][..], "/a%2Fb%2Bc/a%2Bb%20c%2Fd%25%3F%23"),
            (&["_design", "data_store"], "/a%2Fb%2Bc/_design/data_store"),
            (&["keyward!é.a"], "/a%2Fb%2Bc/keyward%21%C3%A9.a"),
            (&[], "/a%2Fb%2Bc"),
        ] {
            assert_eq!(client.url(segments, "").path(), path);
        }
        assert_eq!(client.url(&[], "x=1").as_str(), "http://h:5984/a%2Fb%2Bc?x=1");
        let shown = format!("{client:?}");
        assert!(shown.contains("a/b+c at h:5984") && !shown.contains("dTpw"), "{shown}");
    }
}
