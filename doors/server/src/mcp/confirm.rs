//! What removes many things at once is confirmed, with their number.
//!
//! A client that can ask its user does so: as an answer that requires input from the revision
//! 2026-07-28 on, by a request of the server's before. For all others, the number is an argument of a
//! second call.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, InputRequest, InputRequiredResult, ProtocolVersion,
    ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{ErrorData, RoleServer};

use super::call::Call;
use super::seal::Seal;

/// How long a user is waited for.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5 * 60);
/// Under which name the question is asked.
const QUESTION: &str = "confirm";

/// What is to be confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    /// How many things.
    pub count: u64,
    /// What becomes of them, as a question: `Delete 37 records of notes?`
    pub question: String,
}

/// What came of asking.
#[derive(Debug)]
pub(super) enum Asked {
    /// The user agrees.
    Agreed,
    /// The user does not, or gave no answer.
    Declined,
    /// The client is to ask, and to call again with the answer.
    Later(Box<InputRequiredResult>),
    /// The client cannot ask: the number is to be given as an argument.
    Unable,
    /// The server stops, and waits for nobody.
    Stopping,
}

/// What the user has agreed to, if this call brings their answer.
pub(super) fn answered(
    seal: &Seal,
    call: &Call,
    request: &CallToolRequestParams,
) -> Result<Option<Result<u64, Asked>>, ErrorData> {
    let Some(answers) = &request.input_responses else { return Ok(None) };
    let Some(answer) = answers.get(QUESTION) else { return Ok(None) };
    let answer: ElicitResult = serde_json::from_value(answer.clone()).map_err(|error| {
        ErrorData::invalid_params(format!("the answer to {QUESTION} is none: {error}"), None)
    })?;
    let state = request.request_state.as_deref().unwrap_or_default();
    let arguments = call.arguments.text();
    let count = seal.open(&purpose(call, &arguments), state).and_then(|count| count.parse().ok());
    let Some(count) = count else {
        return Err(ErrorData::invalid_params(
            "requestState is not what was given for these arguments; call again without it",
            None,
        ));
    };
    Ok(Some(if agrees(&answer) { Ok(count) } else { Err(Asked::Declined) }))
}

/// Asks, in the way that the client can.
pub(super) async fn ask(
    seal: &Seal,
    call: &Call,
    ask: &Ask,
    context: &RequestContext<RoleServer>,
) -> Asked {
    let modern = context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    if modern {
        return later(seal, call, ask).map_or(Asked::Unable, |it| Asked::Later(Box::new(it)));
    }
    let (true, Some(params)) = (call.asks, form(&ask.question)) else { return Asked::Unable };
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
    let options = PeerRequestOptions::with_timeout(ANSWER_TIME_MAX);
    let asked = async {
        let handle = context.peer.send_request_with_option(request, options).await.ok()?;
        handle.await_response().await.ok()
    };
    let asked = tokio::select! {
        biased;
        answer = asked => answer,
        () = call.app.lifecycle().stopping() => return Asked::Stopping,
    };
    match asked {
        Some(ClientResult::ElicitResult(answer)) if agrees(&answer) => Asked::Agreed,
        // No answer is none: a model does not agree in a user's place.
        _ => Asked::Declined,
    }
}

/// The answer by which a client of the revision 2026-07-28 or a newer one is to ask its user, and to call
/// again; none, if it cannot ask.
pub(super) fn later(seal: &Seal, call: &Call, ask: &Ask) -> Option<InputRequiredResult> {
    let params = form(&ask.question).filter(|_| call.asks)?;
    let question = InputRequest::Elicitation(ElicitRequest::new(params));
    let questions = BTreeMap::from([(QUESTION.to_owned(), question)]);
    let arguments = call.arguments.text();
    let state = seal.close(&purpose(call, &arguments), &ask.count.to_string());
    Some(InputRequiredResult::new(Some(questions), Some(state)))
}

/// What the state of a call is good for: the same call again, by the same caller.
fn purpose<'c>(call: &'c Call, arguments: &'c str) -> [&'c str; 4] {
    [call.who.tenant().name(), call.who.credential(), &call.tool, arguments]
}

fn form(question: &str) -> Option<ElicitRequestParams> {
    let schema = ElicitationSchema::builder().required_bool(QUESTION).build().ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.to_owned(),
        requested_schema: schema,
    })
}

fn agrees(answer: &ElicitResult) -> bool {
    let content = answer.content.as_ref();
    answer.action == ElicitationAction::Accept
        && content.is_some_and(|content| content[QUESTION] == true)
}
