//! Tickets as clients keep them: opaque texts.

use axum::http::HeaderMap;
use data_encoding::BASE64URL_NOPAD;
use keyward::{Code, cache, locks};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::{Problem, Result};

/// The header with the ticket of a lock that a change is made under.
const LOCK: &str = "keyward-lock";
/// The header with the ticket of a computation.
const TICKET: &str = "keyward-ticket";

/// A ticket as a client gets it.
pub(crate) fn text(ticket: &impl Serialize) -> Result<String> {
    let json = serde_json::to_vec(ticket)
        .map_err(|error| Problem::new(Code::Internal, format!("a ticket has no text: {error}")))?;
    Ok(BASE64URL_NOPAD.encode(&json))
}

/// A ticket that a client gives.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    let json = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
    json.and_then(|json| serde_json::from_slice(&json).ok()).ok_or_else(|| {
        Problem::invalid("this is no ticket").hint("Send a ticket as it was given, all of it.")
    })
}

/// The lock that a change is made under, if the client says so.
pub(super) fn lock(headers: &HeaderMap) -> Result<Option<locks::Ticket>> {
    headers.get(LOCK).map(|text| read(text.to_str().unwrap_or_default())).transpose()
}

/// The computation that a value comes from.
pub(super) fn computation(headers: &HeaderMap) -> Result<cache::Ticket> {
    match headers.get(TICKET) {
        Some(text) => read(text.to_str().unwrap_or_default()),
        None => Err(Problem::invalid("a value is published with the ticket of its computation")
            .hint("Send the ticket that lookup gave as the header Keyward-Ticket.")),
    }
}
