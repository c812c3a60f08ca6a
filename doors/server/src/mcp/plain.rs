//! Calls of tools in their plain form: messages of the newest revision that are whole in themselves. They
//! are answered here, and their JSON is passed on as it stands; the protocol's library takes a message into
//! values and out of them again several times, and begins a service of its own, with tasks and channels,
//! for each.
//!
//! What is not of this form in every detail is left to the library, which knows what to say: other
//! revisions, sessions, progress that is told, a user's answers, metadata of other kinds, and whatever is
//! wrong with a message. Both give the same answers, which the tests compare, but for this: here the
//! structure of an answer has every digit, as its text has, and arguments that the library cannot read
//! (numbers of any size, lists in lists without end, halves of characters) are looked at by the tool.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Response, StatusCode, header};
use rmcp::model::{ClientCapabilities, Implementation, ProtocolVersion};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::arguments::{Arguments, Sent};
use super::call::{Call, asks, through};
use super::confirm;
use super::handler::{Shared, left, unconfirmed};
use super::tools::{self, Done};
use super::{answer, endpoint};
use crate::auth::Identity;
use crate::http::answer::json;
use crate::http::gate::RequestId;
use crate::http::text::{self, Object};
use crate::problem::Result;

const METHOD: &str = "tools/call";
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");
/// How the headers begin that say arguments once more.
const ARGUMENT_HEADERS: &str = "mcp-param-";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'b> {
    jsonrpc: &'b str,
    #[serde(borrow)]
    id: &'b RawValue,
    method: &'b str,
    #[serde(borrow)]
    params: &'b RawValue,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params<'b> {
    name: &'b str,
    #[serde(borrow)]
    arguments: Option<&'b RawValue>,
    #[serde(borrow, rename = "_meta")]
    about: &'b RawValue,
}

/// What a message says of itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct About<'b> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    revision: &'b str,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    client: Implementation,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: ClientCapabilities,
    #[serde(borrow, rename = "progressToken")]
    progress: Option<&'b RawValue>,
    #[serde(borrow, rename = "keyward/run")]
    run: Option<&'b str>,
}

/// A message in the plain form.
#[derive(Debug)]
struct Message<'b> {
    id: &'b str,
    tool: &'b str,
    arguments: Option<&'b RawValue>,
    about: About<'b>,
}

impl<'b> Message<'b> {
    /// The message of a request, if both are in the plain form.
    fn of(headers: &HeaderMap, body: &'b [u8]) -> Option<Self> {
        let revision = ProtocolVersion::V_2026_07_28;
        if only(headers, &REVISION)? != revision.as_str()
            || only(headers, &METHOD_HEADER)? != METHOD
            || headers.contains_key(&endpoint::SESSION)
            || headers.keys().any(|name| name.as_str().starts_with(ARGUMENT_HEADERS))
            || !only(headers, &header::CONTENT_TYPE)?.starts_with("application/json")
        {
            return None;
        }
        let accepted = only(headers, &header::ACCEPT)?;
        if !(accepted.contains("application/json") && accepted.contains("text/event-stream")) {
            return None;
        }
        let Envelope { jsonrpc, id, method, params } = object(std::str::from_utf8(body).ok()?)?;
        let Params { name, arguments, about } = object(params.get())?;
        let about: About<'_> = object(about.get())?;
        // Where a tool does not tell how far it is, nobody can be told.
        let told = |token: &RawValue| tools::tells_progress(name) || !is_id(token.get());
        let plain = jsonrpc == "2.0"
            && method == METHOD
            && about.revision == revision.as_str()
            && only(headers, &NAME_HEADER)? == name
            && tools::is_known(name)
            && is_id(id.get())
            && !about.progress.is_some_and(told);
        plain.then_some(Self { id: id.get(), tool: name, arguments, about })
    }
}

/// An object as something that is understood here; members without their names are not taken for one.
fn object<'b, T: Deserialize<'b>>(json: &'b str) -> Option<T> {
    let is_object = json.trim_ascii_start().starts_with('{');
    is_object.then(|| serde_json::from_str(json).ok())?
}

/// The value of a header that is there once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.to_str().ok())?
}

/// Whether it is a whole number or a text.
fn is_id(json: &str) -> bool {
    json.parse::<i64>().is_ok() || serde_json::from_str::<String>(json).is_ok()
}

/// A call in the plain form.
#[derive(Debug)]
pub(super) struct Plain {
    call: Call,
    /// What the client calls it, as JSON.
    id: String,
}

impl Plain {
    /// The call that a request is, if it is one and in the plain form.
    pub fn of(shared: &Shared, who: &Identity, request: &Request) -> Option<Self> {
        let Sent(body) = request.extensions().get()?;
        let Message { id, tool, arguments, about } = Message::of(request.headers(), body)?;
        let RequestId(name) = request.extensions().get::<RequestId>()?.clone();
        let call = Call {
            app: shared.app.clone(),
            who: through(who, &about.client),
            tool: tool.to_owned(),
            arguments: Arguments::of(arguments)?,
            request: name,
            run: about.run.map(str::to_owned),
            confirmed: None,
            asks: asks(&about.capabilities),
            progress: None,
        };
        Some(Self { call, id: id.to_owned() })
    }

    /// Has it done.
    pub async fn answer(self, shared: &Shared) -> Result<Response<Body>> {
        let result = tokio::select! {
            biased;
            result = result(shared, &self.call) => result,
            () = shared.app.lifecycle().leaving() => text::told(&answer::failed(&left(), "")),
        };
        let answer = Object::new().text("jsonrpc", "2.0").raw("id", &self.id);
        Ok(json(StatusCode::OK, answer.raw("result", &result?).finish()))
    }
}

/// What comes of a call, as JSON.
async fn result(shared: &Shared, call: &Call) -> Result<String> {
    let result = match shared.run(call).await {
        Ok(Done::Told(text)) => match answer::told_as_it_stands(&text) {
            Some(told) => return Ok(told),
            None => answer::told(text),
        },
        Ok(Done::Said { text, failed }) => answer::said(text, failed),
        Ok(Done::Ask(ask)) => match confirm::later(&shared.seal, call, &ask) {
            Some(required) => return text::told(&required),
            None => unconfirmed(call, &ask),
        },
        Err(problem) => answer::failed(&problem, &tools::next(call, &problem)),
    };
    text::told(&result)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use serde_json::{Value, json};

    use super::*;

    fn headers() -> HeaderMap {
        let headers = [
            (REVISION, "2026-07-28"),
            (METHOD_HEADER, METHOD),
            (NAME_HEADER, "agent_get"),
            (header::CONTENT_TYPE, "application/json"),
            (header::ACCEPT, "application/json, text/event-stream"),
        ];
        headers.map(|(name, value)| (name, HeaderValue::from_static(value))).into_iter().collect()
    }

    fn message() -> Value {
        json!({
            "jsonrpc": "2.0",
            "id": 7,
            "method": METHOD,
            "params": {
                "name": "agent_get",
                "arguments": { "key": "a" },
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": { "name": "planner", "version": "1" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        })
    }

    fn is_plain(headers: &HeaderMap, message: &Value) -> bool {
        Message::of(headers, message.to_string().as_bytes()).is_some()
    }

    #[test]
    fn a_call_that_is_whole_in_itself_is_plain() {
        assert!(is_plain(&headers(), &message()));
        let mut with_more = message();
        with_more["id"] = json!("a-1");
        with_more["params"]["_meta"]["keyward/run"] = json!("r-1");
        with_more["params"]["_meta"]["progressToken"] = json!(7);
        assert!(is_plain(&headers(), &with_more));
        with_more["params"].as_object_mut().unwrap().remove("arguments");
        assert!(is_plain(&headers(), &with_more));
    }

    #[test]
    fn whatever_else_a_message_says_is_left_to_the_library() {
        let changes: [(&str, Value); 15] = [
            ("/jsonrpc", json!("1.0")),
            ("/id", json!(null)),
            ("/id", json!(1.5)),
            ("/method", json!("tools/list")),
            ("/more", json!(1)),
            ("/params/name", json!("no_such_tool")),
            ("/params/name", json!("agent_set")),
            ("/params/inputResponses", json!({})),
            ("/params/requestState", json!("x")),
            ("/params", json!(["agent_get", {}, {}])),
            ("/params/_meta", json!(["2026-07-28", { "name": "a", "version": "1" }, {}])),
            ("/params/_meta/progressToken", json!(1.5)),
            ("/params/_meta/example.com~1other", json!(1)),
            ("/params/_meta/io.modelcontextprotocol~1protocolVersion", json!("2025-06-18")),
            ("/params/_meta/io.modelcontextprotocol~1clientCapabilities", json!(null)),
        ];
        for (at, value) in changes {
            let mut message = message();
            let (parent, name) = at.rsplit_once('/').unwrap();
            message.pointer_mut(parent).unwrap()[name.replace("~1", "/")] = value;
            assert!(!is_plain(&headers(), &message), "{at}: {message}");
        }
    }

    #[test]
    fn whatever_else_headers_say_is_left_to_the_library() {
        let other: [(HeaderName, &str); 7] = [
            (REVISION, "2025-06-18"),
            (METHOD_HEADER, "tools/list"),
            (NAME_HEADER, "agent_set"),
            (header::CONTENT_TYPE, "text/plain"),
            (header::ACCEPT, "application/json"),
            (endpoint::SESSION, "s-1"),
            (HeaderName::from_static("mcp-param-key"), "a"),
        ];
        for (name, value) in other {
            let value = HeaderValue::from_static(value);
            let mut changed = headers();
            changed.insert(name.clone(), value.clone());
            assert!(!is_plain(&changed, &message()), "{name}: {value:?}");
            let mut twice = headers();
            twice.append(name.clone(), value);
            assert!(!is_plain(&twice, &message()), "{name} twice");
            let mut without = headers();
            if without.remove(&name).is_some() {
                assert!(!is_plain(&without, &message()), "no {name}");
            }
        }
    }

    #[test]
    fn progress_that_is_told_is_left_to_the_library() {
        let (mut headers, mut message) = (headers(), message());
        headers.insert(NAME_HEADER, HeaderValue::from_static("job_get"));
        message["params"]["name"] = json!("job_get");
        assert!(is_plain(&headers, &message));
        message["params"]["_meta"]["progressToken"] = json!("t");
        assert!(!is_plain(&headers, &message));
    }

    #[test]
    fn members_without_their_names_are_left_to_the_library() {
        let about = r#"["2026-07-28",{"name":"x","version":"1"},{},null,null]"#;
        let list = format!(r#"["2.0",1,"tools/call",["agent_get",{{"key":"a"}},{about}]]"#);
        assert!(Message::of(&headers(), list.as_bytes()).is_none());
    }

    #[test]
    fn an_id_that_is_no_text_is_left_to_the_library() {
        let half = message().to_string().replacen("\"id\":7", r#""id":"\ud800""#, 1);
        assert!(Message::of(&headers(), half.as_bytes()).is_none());
    }

    #[test]
    fn a_name_that_is_there_twice_is_left_to_the_library() {
        let twice = message().to_string().replacen("\"id\":7", "\"id\":7,\"id\":8", 1);
        assert!(Message::of(&headers(), twice.as_bytes()).is_none());
    }
}
