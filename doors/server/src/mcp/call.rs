//! One call of a tool: who calls, with what, and how far it is.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::request::Parts;
use rmcp::model::{
    ClientCapabilities, Implementation, JsonObject, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use super::arguments::{Arguments, Sent};
use crate::app::App;
use crate::auth::Identity;
use crate::http::gate::RequestId;

/// The member of a message's metadata that names the run of the agent.
const RUN: &str = "keyward/run";
/// The longest name of an agent that is remembered.
const AGENT_BYTES_MAX: usize = 200;

/// Who sends a message, through which agent. Over HTTP, the gate has said who it is; over standard
/// input, the transport has.
pub(super) fn caller(context: &RequestContext<RoleServer>) -> Result<Identity, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let who = context
        .extensions
        .get::<Identity>()
        .or_else(|| parts.and_then(|parts| parts.extensions.get::<Identity>()))
        .ok_or_else(|| ErrorData::internal_error("nobody has said who is calling", None))?;
    Ok(match context.client_info() {
        Some(client) => through(who, &client),
        None => who.clone(),
    })
}

/// Somebody through the agent that a client says it is, if that can be a name.
pub(super) fn through(who: &Identity, client: &Implementation) -> Identity {
    let agent: String = client.name.chars().filter(|letter| !letter.is_control()).collect();
    match agent.is_empty() || agent.len() > AGENT_BYTES_MAX {
        true => who.clone(),
        false => who.through(&agent),
    }
}

/// The headers that a message came with, over HTTP.
pub(super) fn headers(context: &RequestContext<RoleServer>) -> Option<&HeaderMap> {
    context.extensions.get::<Parts>().map(|parts| &parts.headers)
}

/// The run that a message is part of: what its metadata says, else the session.
fn run(context: &RequestContext<RoleServer>) -> Option<String> {
    let said = context.meta.get(RUN).and_then(Value::as_str).map(str::to_owned);
    let session = || headers(context)?.get("mcp-session-id")?.to_str().ok().map(str::to_owned);
    said.or_else(session)
}

/// Whether a client can ask its user with a form. One that says nothing of how it asks can.
pub(super) fn asks(client: &ClientCapabilities) -> bool {
    let can = client.elicitation.as_ref();
    can.is_some_and(|asks| asks.form.is_some() || asks.url.is_none())
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub app: App,
    pub who: Identity,
    pub tool: String,
    pub arguments: Arguments,
    /// What the request is called in logs.
    pub request: Arc<str>,
    /// The run of the agent that the call is part of: the session, or what the client says.
    pub run: Option<String>,
    /// To how many the user has agreed.
    pub confirmed: Option<u64>,
    /// Whether the client can ask its user.
    pub asks: bool,
    /// Whom to tell how far it is, if anybody wants to know.
    pub progress: Option<(Peer<RoleServer>, ProgressToken)>,
}

impl Call {
    pub fn new(
        app: &App,
        tool: &str,
        arguments: Option<&JsonObject>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Self, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let within = |parts: &Parts| parts.extensions.get::<Sent>().cloned();
        let sent = context.extensions.get::<Sent>().cloned().or_else(|| parts.and_then(within));
        let request = parts.and_then(|parts| parts.extensions.get::<RequestId>());
        let request = request.map_or_else(
            || format!("{}-{}", app.run(), context.id).into(),
            |request| request.0.clone(),
        );
        Ok(Self {
            app: app.clone(),
            who: caller(context)?,
            tool: tool.to_owned(),
            arguments: Arguments::new(sent.as_ref(), arguments),
            request,
            run: run(context),
            confirmed: None,
            asks: context.client_capabilities().is_some_and(|client| asks(&client)),
            progress: context.meta.get_progress_token().map(|token| (context.peer.clone(), token)),
        })
    }

    /// To how many it is agreed: by the user, where the client can ask them, and else by what the model
    /// says in an argument.
    pub fn agreed(&self, said: Option<u64>) -> Option<u64> {
        self.confirmed.or(said.filter(|_| !self.asks))
    }

    /// Tells how far it is, if the client wants to know. A client that cannot be told is not waited for.
    /// Which tools do so, [`tells_progress`](super::tools::tells_progress) says.
    pub async fn reach(&self, done: u64, total: Option<u64>, message: &str) {
        let Some((peer, token)) = &self.progress else { return };
        let mut told = ProgressNotificationParam::new(token.clone(), done as f64);
        told.total = total.map(|total| total as f64);
        told.message = Some(message.to_owned());
        if let Err(error) = peer.notify_progress(told).await {
            tracing::debug!(%error, "a client could not be told how far a call is");
        }
    }
}
