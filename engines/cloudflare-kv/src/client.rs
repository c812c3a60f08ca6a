//! The requests of the REST API.

use std::collections::{BTreeMap, HashMap};

use keyward_engine::{Error, ErrorKind, Result};
use keyward_http::header::{AUTHORIZATION, HeaderValue};
use keyward_http::{Effect, Method, Request, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::options::GET_KEYS_MAX;
use crate::{Options, error, value};

/// The fewest names that a page of a listing can be asked for.
const LIST_NAMES_MIN: usize = 10;
/// How often names that a bulk request left out are sent again.
const LEFT_OUT_ROUNDS: usize = 3;
/// What text has in place of bytes that are none.
const REPLACEMENT: char = '\u{fffd}';

/// One namespace. Clones share connections.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: keyward_http::Client,
    namespace: String,
    authorization: HeaderValue,
}

/// A pair to put.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Pair {
    pub key: String,
    pub value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
    /// In seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration: Option<i64>,
}

/// A pair as it is read.
#[derive(Debug)]
pub(crate) struct Found {
    pub value: value::Read,
    pub metadata: Option<Box<RawValue>>,
    pub expiration: Option<f64>,
}

/// A page of names.
#[derive(Debug)]
pub(crate) struct Names {
    pub names: Vec<Name>,
    /// Where to go on.
    pub next: Option<String>,
}

/// A name with what a listing says about it.
#[derive(Debug, Deserialize)]
pub(crate) struct Name {
    pub name: String,
    #[serde(default)]
    pub expiration: Option<f64>,
    #[serde(default)]
    pub metadata: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Answer<T> {
    /// Without it, an answer with the status 200 counts as a success.
    #[serde(default = "yes")]
    success: bool,
    result: Option<T>,
    #[serde(default)]
    result_info: Option<ResultInfo>,
}

#[derive(Deserialize)]
struct ResultInfo {
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct Values {
    values: HashMap<String, Option<TextFound>>,
}

#[derive(Deserialize)]
struct TextFound {
    value: String,
    #[serde(default)]
    metadata: Option<Box<RawValue>>,
    #[serde(default)]
    expiration: Option<f64>,
}

#[derive(Default, Deserialize)]
struct Written {
    #[serde(default)]
    unsuccessful_keys: Vec<String>,
}

impl Client {
    pub fn new(options: &Options) -> Result<Self> {
        let (namespace, is_encrypted) = options.namespace_url()?;
        let authorization = options.find_token()?.header();
        let http = keyward_http::Client::new("Workers KV", options.http, is_encrypted)?;
        Ok(Self { http, namespace, authorization })
    }

    /// Up to `limit` names (or a few more) in the order of their bytes; `None` if there is no such namespace.
    pub async fn list(
        &self,
        prefix: &str,
        page: Option<&str>,
        limit: usize,
    ) -> Result<Option<Names>> {
        let doing = "list names";
        let mut url = self.url("/keys")?;
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("limit", &limit.max(LIST_NAMES_MIN).to_string());
            if !prefix.is_empty() {
                query.append_pair("prefix", prefix);
            }
            if let Some(page) = page {
                query.append_pair("cursor", page);
            }
        }
        let response = self.send(Request::get(url)).await?;
        if error::is_namespace_not_found(&response) {
            return Ok(None);
        }
        let answer: Answer<Vec<Name>> = decode(doing, &response)?;
        // An empty namespace has an empty list. Without one, nobody knows what the namespace holds.
        let names = answer.result.ok_or_else(|| error::unreadable(doing, "it has no result"))?;
        let next = answer.result_info.and_then(|info| info.cursor).filter(|next| !next.is_empty());
        Ok(Some(Names { names, next }))
    }

    /// The pairs of some names, a hundred at a time.
    pub async fn get(&self, names: &[&str]) -> Result<HashMap<String, Found>> {
        let mut found = HashMap::with_capacity(names.len());
        let mut parts: Vec<&[&str]> = names.chunks(GET_KEYS_MAX).collect();
        while let Some(part) = parts.pop() {
            match (self.get_texts(part).await?, part) {
                (Some(texts), _) => {
                    for (name, text) in texts {
                        let Some(text) = text else { continue };
                        let TextFound { value, metadata, expiration } = text;
                        let pair = if value.contains(REPLACEMENT) {
                            // Perhaps the value is no text, and was made one.
                            self.get_bytes(&name).await?
                        } else {
                            Some(Found { value: value::read_text(value), metadata, expiration })
                        };
                        found.extend(pair.map(|pair| (name, pair)));
                    }
                }
                (None, [name]) => {
                    let pair = self.get_bytes(name).await?;
                    found.extend(pair.map(|pair| ((*name).to_owned(), pair)));
                }
                // Together they are too large, or one of them is no text.
                (None, many) => parts.extend(<[_; 2]>::from(many.split_at(many.len() / 2))),
            }
        }
        Ok(found)
    }

    /// The pairs of up to a hundred names; `None` if they cannot be had in one answer.
    async fn get_texts(
        &self,
        names: &[&str],
    ) -> Result<Option<HashMap<String, Option<TextFound>>>> {
        #[derive(Serialize)]
        struct Asked<'a> {
            keys: &'a [&'a str],
            r#type: &'static str,
            #[serde(rename = "withMetadata")]
            with_metadata: bool,
        }
        let doing = "read entries";
        let asked = Asked { keys: names, r#type: "text", with_metadata: true };
        let url = self.url("/bulk/get")?;
        let request = Request::new(Method::POST, url, Effect::Reads).json(encode(&asked)?);
        let response = self.send(request).await?;
        if error::is_about_content(&response) {
            return Ok(None);
        }
        let answer: Answer<Values> = decode(doing, &response)?;
        let result = answer.result.ok_or_else(|| error::unreadable(doing, "it has no result"))?;
        Ok(Some(result.values))
    }

    /// One pair with its value as bytes.
    async fn get_bytes(&self, name: &str) -> Result<Option<Found>> {
        let doing = "read an entry";
        let response =
            self.send(Request::get(self.url(&format!("/values/{}", escaped(name)))?)).await?;
        if error::is_key_not_found(&response) {
            return Ok(None);
        }
        if response.status != StatusCode::OK {
            return Err(error::refused(doing, &response));
        }
        let expiration = response.headers.get("expiration").and_then(|text| text.to_str().ok());
        let expiration = expiration.and_then(|text| text.parse().ok());
        let value = value::read(response.body.into());
        let response =
            self.send(Request::get(self.url(&format!("/metadata/{}", escaped(name)))?)).await?;
        let metadata = match error::is_key_not_found(&response) {
            true => None,
            false => decode::<Option<Box<RawValue>>>(doing, &response)?.result.flatten(),
        };
        Ok(Some(Found { value, metadata, expiration }))
    }

    /// Puts pairs; those that an answer leaves out are sent again.
    pub async fn put(&self, mut pairs: BTreeMap<String, Pair>) -> Result<()> {
        for _ in 0..LEFT_OUT_ROUNDS {
            let all: Vec<&Pair> = pairs.values().collect();
            let request = Request::new(Method::PUT, self.url("/bulk")?, Effect::WritesOnce);
            let left = self.write("write entries", request.json(encode(&all)?)).await?;
            if left.is_empty() {
                return Ok(());
            }
            pairs.retain(|name, _| left.contains(name));
        }
        Err(left_out(pairs.len()))
    }

    /// Deletes names; those that an answer leaves out are sent again.
    pub async fn delete(&self, mut names: Vec<String>) -> Result<()> {
        for _ in 0..LEFT_OUT_ROUNDS {
            let url = self.url("/bulk/delete")?;
            let request = Request::new(Method::POST, url, Effect::WritesOnce);
            let left = self.write("delete entries", request.json(encode(&names)?)).await?;
            if left.is_empty() {
                return Ok(());
            }
            names.retain(|name| left.contains(name));
        }
        Err(left_out(names.len()))
    }

    /// Sends a bulk write; gives the names that were not written.
    async fn write(&self, doing: &str, request: Request) -> Result<Vec<String>> {
        let response = self.send(request).await?;
        if response.status != StatusCode::OK {
            let refused = error::refused(doing, &response);
            // An attempt before this one may have been carried out.
            return Err(match response.resent {
                true => Error::new(ErrorKind::OutcomeUnknown, refused.message()),
                false => refused,
            });
        }
        let unclear = |error: Error| Error::new(ErrorKind::OutcomeUnknown, error.message());
        let answer: Answer<Written> = decode(doing, &response).map_err(unclear)?;
        Ok(answer.result.unwrap_or_default().unsuccessful_keys)
    }

    async fn send(&self, request: Request) -> Result<Response> {
        self.http.send(request.header(AUTHORIZATION, self.authorization.clone())).await
    }

    fn url(&self, path: &str) -> Result<Url> {
        Url::parse(&format!("{}{path}", self.namespace)).map_err(|error| {
            Error::new(ErrorKind::Internal, "no URL for a request to Workers KV").caused_by(error)
        })
    }
}

fn decode<T: DeserializeOwned>(doing: &str, response: &Response) -> Result<Answer<T>> {
    if response.status != StatusCode::OK {
        return Err(error::refused(doing, response));
    }
    let answer: Answer<T> =
        serde_json::from_slice(&response.body).map_err(|error| error::unreadable(doing, error))?;
    match answer.success {
        true => Ok(answer),
        false => Err(error::refused(doing, response)),
    }
}

fn yes() -> bool {
    true
}

fn encode<T: Serialize>(body: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(body).map_err(|error| {
        Error::new(ErrorKind::Internal, "a request to Workers KV cannot be written")
            .caused_by(error)
    })
}

fn left_out(names: usize) -> Error {
    let message =
        format!("Workers KV did not fully write {names} entries, asked {LEFT_OUT_ROUNDS} times");
    Error::new(ErrorKind::OutcomeUnknown, message)
}

/// A name as one segment of a path.
fn escaped(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
