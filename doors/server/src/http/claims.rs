//! Claims: `/v1/stores/{store}/queues/{queue}/claim`.

use keyward::moment_text;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use keyward::queue::{Attempt, Claimant, PastAttempt, Queue};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::json;
use super::request::{At, Content};
use super::text::Object;
use crate::api::claims;
use crate::api::queues::reach;
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::metrics::Counted;
use crate::problem::{Problem, Result};

/// The longest lease: half a day.
const LEASE_MAX_MS: u64 = 12 * 60 * 60 * 1_000;
/// The longest name of a worker.
const WORKER_BYTES_MAX: usize = 64;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(claim))
}

/// How messages are claimed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ClaimBody {
    /// At most so many messages; one, if it is left out.
    #[schema(minimum = 1, maximum = 256)]
    max: Option<usize>,
    /// How long they are held without a sign of life; 30 seconds, if it is left out and the server is
    /// not told otherwise. At most half a day.
    #[schema(minimum = 1)]
    lease_ms: Option<u64>,
    /// How long to wait where there is nothing to claim. At most 25 seconds, and less than an answer may
    /// take, are waited for.
    #[serde(default)]
    wait_ms: u64,
    /// Who works on them, for people: visible ASCII characters.
    #[schema(max_length = 64)]
    worker: Option<String>,
}

impl ClaimBody {
    fn claimant(&self, who: &Identity) -> Result<Claimant> {
        let lease = match self.lease_ms {
            None => None,
            Some(ms @ 1..=LEASE_MAX_MS) => Some(Duration::from_millis(ms)),
            Some(ms) => {
                let detail = format!("lease_ms is from 1 to {LEASE_MAX_MS}, not {ms}");
                return Err(Problem::invalid(detail));
            }
        };
        let is_plain = |name: &str| {
            name.len() <= WORKER_BYTES_MAX && name.bytes().all(|b| b.is_ascii_graphic())
        };
        let holder = match &self.worker {
            Some(name) if name.is_empty() || !is_plain(name) => {
                return Err(Problem::invalid(format!(
                    "the name of a worker has 1 to {WORKER_BYTES_MAX} visible ASCII characters"
                )));
            }
            Some(name) => name.clone(),
            None => who.tenant().name().to_owned(),
        };
        Ok(Claimant { holder: Some(holder), lease })
    }
}

/// What was claimed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct ClaimedBody {
    /// The longest in line first; none, if there was nothing to claim.
    messages: Vec<ClaimedMessage>,
    /// Whether the queue is paused.
    paused: bool,
    /// When the next message that waits for its time is due, as far as that was seen.
    next_due: Option<String>,
}

/// A message in hand.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct ClaimedMessage {
    id: String,
    /// What names this attempt: to be sent with everything about it, to any server of the store.
    nonce: String,
    payload: serde_json::Value,
    /// The version of its content.
    version: Option<String>,
    /// Which attempt this is, counted from 1.
    attempt: u32,
    /// For how long it is held without a sign of life.
    lease_ms: u64,
    /// Whether it is a job, so that its result is kept.
    job: bool,
    /// How long the attempt may take, if its job says so: then it should be ended as failed.
    timeout_ms: Option<u64>,
    /// The attempts before this one, the latest of them.
    history: Vec<PastAttemptBody>,
}

/// An attempt that ended without a completion.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct PastAttemptBody {
    /// Which one it was, counted from 1.
    attempt: u32,
    /// Who made it.
    by: String,
    claimed: String,
    ended: String,
    /// Why it ended.
    error: String,
}

pub(super) fn past(past: &PastAttempt) -> String {
    Object::new()
        .raw("attempt", &past.attempt.to_string())
        .text("by", &past.by)
        .text("claimed", &past.claimed_at)
        .text("ended", &past.ended_at)
        .text("error", &past.error)
        .finish()
}

pub(super) fn millis(time: Option<Duration>) -> String {
    time.map_or("null".to_owned(), |time| time.as_millis().to_string())
}

fn claimed(attempt: &Attempt) -> String {
    Object::new()
        .text("id", attempt.id())
        .text("nonce", attempt.nonce())
        .raw("payload", attempt.payload().as_str())
        .optional("version", attempt.version())
        .raw("attempt", &attempt.number().to_string())
        .raw("lease_ms", &millis(Some(attempt.lease())))
        .raw("job", &attempt.is_job().to_string())
        .raw("timeout_ms", &millis(attempt.timeout()))
        .list("history", attempt.history().iter().map(past))
        .finish()
}

/// Claims messages: those first that are longest in line, and those whose worker gave no sign of life.
///
/// Each counts as an attempt, and is held for the lease; `heartbeat` holds it longer. Where there is
/// nothing to claim, it is waited for. A client that goes away while it waits has claimed nothing; what
/// was claimed for a client that is gone by then comes back when its lease has ended.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/queues/{queue}/claim",
    tag = "messages",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("queue" = String, Path, description = "The name of a queue"),
    ),
    request_body = ClaimBody,
    responses((status = 200, description = "What was claimed", body = ClaimedBody), ProblemAnswers),
)]
async fn claim(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((store, queue)): At<(String, String)>,
    content: Content,
) -> Answered {
    let served = app.store(&store)?;
    reach(&who, served, Need::Write)?;
    let asked: ClaimBody = content.read()?;
    if content.mark(&who)?.is_some() {
        return Err(Problem::invalid("a claim is not remembered by an idempotency key").hint(
            "Leave out Idempotency-Key: what was claimed without an answer comes back after its lease.",
        ).into());
    }
    let max = asked.max.unwrap_or(1);
    if !(1..=Queue::CLAIM_MAX).contains(&max) {
        let detail = format!("from 1 to {} messages are claimed, not {max}", Queue::CLAIM_MAX);
        return Err(Problem::invalid(detail).into());
    }
    let claimant = asked.claimant(&who)?;
    let wait = app.waits().at_most(Duration::from_millis(asked.wait_ms));
    let claims = if wait.is_zero() {
        claims::claim(&who, served, &queue, &claimant, max, std::future::ready(())).await?
    } else {
        // Refused at once, whether or not it would have had to wait: who polls should ask less often.
        let _place = app.waits().place(&who)?;
        let _waiting = Counted::new(&app.metrics().claims_waiting);
        let patience = async {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = app.lifecycle().stopping() => {}
            }
        };
        claims::claim(&who, served, &queue, &claimant, max, patience).await?
    };
    let text = Object::new()
        .list("messages", claims.attempts.iter().map(claimed))
        .raw("paused", &claims.paused.to_string())
        .optional("next_due", claims.next_due.map(moment_text).as_deref());
    Ok(json(StatusCode::OK, text.finish()))
}
