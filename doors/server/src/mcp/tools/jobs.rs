//! Jobs: what workers do, how far they are, and what came of it.

use std::pin::pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use keyward::Code;
use keyward::queue::Status;
use rmcp::model::Tool;
use serde_json::{Value, json};

use super::schema::{
    any, cursor, gives, limit, number, object, optional_text, page, store as store_argument, takes,
    text,
};
use super::{Call, Done, Effect, store, stores, tool};
use crate::api::jobs;
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::http::jobs::job;
use crate::http::queues::PageParameters;
use crate::http::text::Object;
use crate::mcp::arguments::read;
use crate::problem::{Problem, Result};

pub(super) fn tools(app: &App, who: &Identity) -> Vec<Tool> {
    let kept = |need| stores(app, who, need).any(|served| served.jobs().is_ok());
    if who.bound_to().is_some() || !kept(Need::Read) {
        return Vec::new();
    }
    let store = |need| store_argument(app, who, need);
    let mut tools = vec![
        tool(
            "job_get",
            "Look at a job",
            "Shows a job with its status: an activity while it is under way, then a result, or a \
             trace of why there is none. With wait, the answer comes when the job has ended, or after \
             that time; progress is told meanwhile."
                .to_owned(),
            Effect::Reads,
            (
                takes(
                    json!({
                        "store": store(Need::Read),
                        "id": text("The id of the job."),
                        "wait": number("For how many seconds to wait for its end, up to 25; none, if left out."),
                    }),
                    &["id"],
                ),
                job_schema(),
            ),
        ),
        tool(
            "job_list",
            "List jobs",
            "Lists jobs by id, a page at a time.".to_owned(),
            Effect::Reads,
            (
                takes(
                    json!({ "store": store(Need::Read), "limit": limit(), "cursor": cursor() }),
                    &[],
                ),
                page("items", job_schema()),
            ),
        ),
    ];
    if kept(Need::Write) {
        tools.push(tool(
            "job_cancel",
            "Cancel a job",
            "Cancels a job: it leaves its queue, and its status is a trace. One that has ended stays \
             as it is, and the outcome is finished."
                .to_owned(),
            Effect::Removes,
            (
                takes(
                    json!({ "store": store(Need::Write), "id": text("The id of the job.") }),
                    &["id"],
                ),
                gives(
                    json!({ "outcome": {
                        "type": "string",
                        "enum": ["cancelled", "finished"],
                        "description": "What became of it.",
                    } }),
                    &["outcome"],
                ),
            ),
        ));
    }
    tools
}

pub(super) fn job_schema() -> Value {
    gives(
        json!({
            "id": text("Its id."),
            "queue": text("The queue it is worked off from."),
            "submitted": text("When it was submitted (RFC 3339)."),
            "finished": optional_text("When it ended; null, if it has not."),
            "status": {
                "type": "object",
                "description": "Exactly one of these.",
                "properties": {
                    "activity": object("What it is doing: name, detail, progress with done and total, attempt."),
                    "result": any("What came of it: any JSON."),
                    "trace": object("Why nothing came of it: kind (failed, cancelled, dropped), message, attempts."),
                },
            },
        }),
        &["id", "queue", "submitted", "finished", "status"],
    )
}

pub(super) async fn get(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let served = store(call, arguments.take_text("store")?.as_deref())?;
    let id = id(arguments.take_text("id")?)?;
    let wait = call.app.waits().bounded(arguments.take("wait")?.unwrap_or(0.0))?;
    arguments.finish()?;
    if !wait.is_zero() {
        let statuses = jobs::watch(&call.who, served, &id).await?;
        ended(call, statuses, wait).await?;
    }
    Ok(Done::Told(job(&jobs::show(&call.who, served, &id).await?)?))
}

/// Waits until a job has ended, or for some time, and tells how far it is.
pub(super) async fn ended(
    call: &Call,
    statuses: impl Stream<Item = Result<Status>>,
    wait: Duration,
) -> Result<()> {
    let mut statuses = pin!(statuses);
    let mut told = None;
    let watching = async {
        while let Some(status) = statuses.next().await {
            let Status::Activity(activity) = status? else { break };
            let (done, total) =
                activity.progress.as_ref().map_or((0, None), |it| (it.done, it.total));
            // What is told must grow.
            if told.is_none_or(|told| done > told) {
                told = Some(done);
                call.reach(done, total, &activity.name).await;
            }
        }
        Ok(())
    };
    // In time or not: how it stands is told.
    let in_time = async { tokio::time::timeout(wait, watching).await.unwrap_or(Ok(())) };
    call.app.waits().during(&call.who, wait, call.app.lifecycle(), in_time).await
}

pub(super) async fn list(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let served = store(call, arguments.take_text("store")?.as_deref())?;
    let text = arguments.text();
    let paging = read::<PageParameters>(&text)?.paging()?;
    let page = jobs::list(&call.who, served, &paging).await?;
    let items = page.items.iter().map(job).collect::<Result<Vec<_>>>()?;
    let text = Object::new().list("items", items).optional("next", page.next.as_deref());
    Ok(Done::Told(text.finish()))
}

pub(super) async fn cancel(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let served = store(call, arguments.take_text("store")?.as_deref())?;
    let id = id(arguments.take_text("id")?)?;
    arguments.finish()?;
    let once = jobs::cancel(&call.who, served, &id, None).await?;
    Ok(Done::Told(Object::new().text("outcome", &once.word).finish()))
}

fn id(given: Option<String>) -> Result<String> {
    given.ok_or_else(|| {
        Problem::invalid("the argument id is missing").hint("job_list shows the ids of jobs.")
    })
}

pub(super) fn next(problem: &Problem) -> Option<String> {
    (problem.code() == Code::NotFound)
        .then(|| "call job_list to see which jobs there are.".to_owned())
}
