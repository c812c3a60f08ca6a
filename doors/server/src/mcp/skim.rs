//! Messages that are not read: too large, or no message of the protocol.
//!
//! A client waits for an answer to every request, so a refusal must carry the `id` of what it refuses. The `id`
//! may come first or last; all of a message is looked through for it, and nothing of it is kept.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use keyward::Code;
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};

use crate::http::answer::json;
use crate::http::too_large;
use crate::problem::{Problem, Result};

/// How much of a name or of an `id` is kept: more than any client uses.
const TOKEN_BYTES_MAX: usize = 1024;

/// Looks for the `id` of a request in a message that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Skim {
    /// How many arrays and objects are open.
    depth: usize,
    in_text: bool,
    /// Whether the next character of a text stands after a backslash.
    escaped: bool,
    /// What stands between the colon and the comma of a member of the message itself.
    member: Member,
    /// The name, or the value if it is wanted, as JSON.
    token: Vec<u8>,
    has_method: bool,
    id: Option<RequestId>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Member {
    /// Its name comes.
    #[default]
    Name,
    /// The value of `id` comes.
    Id,
    /// The value of another one comes.
    Other,
}

impl Skim {
    /// The `id` of a request that is at hand as a whole.
    pub fn id_of(message: &[u8]) -> Option<RequestId> {
        let mut skim = Self::default();
        skim.push(message);
        skim.id()
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        for byte in piece {
            self.step(*byte);
        }
    }

    /// The `id`, if the message is a request. What is none, a notification or an answer, is not answered.
    pub fn id(self) -> Option<RequestId> {
        self.id.filter(|_| self.has_method)
    }

    fn step(&mut self, byte: u8) {
        if self.in_text {
            self.keep(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_member();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.member == Member::Name => self.end_name(),
            b',' => self.end_member(),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        // One that is longer than it may be is cut, and no JSON then.
        let wanted = self.depth == 1 && self.member != Member::Other;
        if wanted && self.token.len() < TOKEN_BYTES_MAX {
            self.token.push(byte);
        }
    }

    fn end_name(&mut self) {
        if self.depth != 1 {
            return;
        }
        let name: Option<String> = serde_json::from_slice(&self.token).ok();
        self.token.clear();
        self.has_method |= name.as_deref() == Some("method");
        self.member = if name.as_deref() == Some("id") { Member::Id } else { Member::Other };
    }

    fn end_member(&mut self) {
        if self.depth != 1 {
            return;
        }
        if self.member == Member::Id {
            self.id = serde_json::from_slice(&self.token).ok();
        }
        self.token.clear();
        self.member = Member::Name;
    }
}

/// A message over HTTP that was larger than it may be, and was passed over.
#[derive(Debug, Clone)]
pub(crate) struct PassedOver {
    id: Option<RequestId>,
    bytes_max: usize,
}

impl PassedOver {
    pub fn new(skim: Skim, bytes_max: usize) -> Self {
        Self { id: skim.id(), bytes_max }
    }

    /// The answer to the request that it was; a problem, if it was none.
    pub fn answer(&self) -> Result<Response<Body>> {
        match &self.id {
            Some(id) => refusal_over_http(&too_long(self.bytes_max), id),
            None => Err(too_large(self.bytes_max)),
        }
    }
}

/// What is said of a message that is larger than it may be.
pub(super) fn too_long(bytes_max: usize) -> String {
    format!(
        "the message is larger than {bytes_max} bytes, and nothing was done: send less at a time"
    )
}

/// A refusal as an answer to a request. It has the status of every answer: older clients take any other for
/// the end of their session.
pub(super) fn refusal_over_http(why: &str, id: &RequestId) -> Result<Response<Body>> {
    let refusal = refusal(why.to_owned(), Some(id.clone()));
    let text = serde_json::to_string(&refusal);
    let text = text.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    Ok(json(StatusCode::OK, text))
}

/// A refusal as a message: an answer to a request, if its `id` could be found.
pub(super) fn refusal(why: String, id: Option<RequestId>) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::invalid_request(why, None), id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(message: &str) -> Option<String> {
        let whole = Skim::id_of(message.as_bytes());
        // Where the pieces end makes no difference.
        let mut skim = Skim::default();
        message.as_bytes().chunks(1).for_each(|piece| skim.push(piece));
        assert_eq!(skim.id(), whole, "{message}");
        whole.map(|id| serde_json::to_string(&id).unwrap())
    }

    #[test]
    fn the_id_of_a_request_is_found_wherever_it_stands() {
        let long = "x".repeat(100_000);
        for (message, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#.to_owned(), "7"),
            (r#" { "method" : "m" , "id" : "a\"b" } "#.to_owned(), r#""a\"b""#),
            (r#"{"i\u0064":1,"method":"m"}"#.to_owned(), "1"),
            (format!(r#"{{"method":"m","params":{{"id":1,"t":"{long}\\"}},"id":2}}"#), "2"),
            (format!(r#"{{"{long}":[{{"id":1}}],"method":"m","id":3}}"#), "3"),
            // It need not end.
            (format!(r#"{{"id":4,"method":"m","params":{{"t":"{long}"#), "4"),
        ] {
            let beginning = &message[..message.len().min(60)];
            assert_eq!(found(&message).as_deref(), Some(id), "{beginning}");
        }
    }

    #[test]
    fn what_is_no_request_has_no_id() {
        let long = "x".repeat(2 * TOKEN_BYTES_MAX);
        for message in [
            "",
            "no JSON",
            r#"{"id":7,"result":{"method":"m"}}"#,
            r#"{"method":"m","params":{"id":7}}"#,
            r#"{"method":"m","id":null}"#,
            r#"{"method":"m","id":{"id":7}}"#,
            r#"{"method":"m","id":[7]}"#,
            r#"[{"id":7,"method":"m"}]"#,
            r#""id":7,"method":"m""#,
            "}}]]:,:,\"",
            &format!(r#"{{"id":"{long}","method":"m"}}"#),
        ] {
            assert_eq!(found(message), None, "{message}");
        }
    }
}
