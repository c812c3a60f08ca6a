//! Agreements under work: their policies and issues.

use std::time::Duration;

use keyward::Code;
use keyward::agreements::{Document, Task};
use keyward::queue::{Job, Status};
use rmcp::model::Tool;

use super::agreement_schemas as schemas;
use super::jobs::ended;
use super::records::version_condition;
use super::{Call, Done, Effect, beginning, named_or_only, required, tool};
use crate::api::agreements::policies::{self, Asked, Making, Wanted};
use crate::api::agreements::{self, analysis, issues, page_id, pages, tasks};
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::http::agreements::{ChangeBody, FilterParameters, issue_text, listed, pages_text};
use crate::http::jobs::job;
use crate::http::text::{Object, told};
use crate::mcp::arguments::{Arguments, read};
use crate::problem::{Problem, Result};

/// How much of a policy is told.
const CONTENT_BYTES_MAX: usize = 256 * 1024;
/// How many pages are told.
const PAGES_MAX: usize = 500;
/// How many issues are told, if nothing else is asked for.
const ISSUES_USUAL: usize = 50;

pub(super) fn tools(app: &App, who: &Identity) -> Vec<Tool> {
    let named = |need| agreements::list(who, app, need).map(|kept| kept.name());
    let (reads, writes): (Vec<_>, Vec<_>) =
        (named(Need::Read).collect(), named(Need::Write).collect());
    let mut tools = Vec::new();
    if !reads.is_empty() {
        tools.extend([
            tool(
                "agreement_read_policy",
                "Read a policy of an agreement",
                "Reads a policy that is attached to a page, as Markdown, in a language if one is named. \
                 Nothing is extracted or translated: agreement_make_policy does that. Without source, it \
                 lists the policies of the page; without page, the pages of the workspace."
                    .to_owned(),
                Effect::Reads,
                schemas::read_policy(&reads),
            ),
            tool(
                "agreement_list_issues",
                "List issues",
                "Lists the issues of a page, some at a time; or shows one with what happened to it, if \
                 issue is given."
                    .to_owned(),
                Effect::Reads,
                schemas::list_issues(&reads),
            ),
        ]);
    }
    if !writes.is_empty() {
        tools.extend([
            tool(
                "agreement_make_policy",
                "Extract or translate a policy",
                "Extracts a policy that is attached to a page, translates it if a language is named, and \
                 returns it as agreement_read_policy does. It is made once and kept, unless redo asks for \
                 it again; a translation may cost money. It goes on in the background; with wait, the answer comes when it is done, or after \
                 that time."
                    .to_owned(),
                Effect::Changes,
                schemas::make_policy(&writes),
            ),
            tool(
                "agreement_move_issue",
                "Change an issue",
                "Changes an issue in one way: moves it to another state, says how severe it is, notes \
                 something about it, archives it or brings it back. With if_version, it is left alone \
                 if somebody else changed it."
                    .to_owned(),
                Effect::Changes,
                schemas::move_issue(&writes),
            ),
            tool(
                "agreement_analyze",
                "Look for issues",
                "Has a model compare a page with its policies and keep the issues that it finds; known \
                 ones are not reported again. It goes on in the background; with wait, the answer comes \
                 when it has ended, or after that time."
                    .to_owned(),
                Effect::Sets,
                schemas::analyze(&writes),
            ),
        ]);
    }
    tools
}

/// The workspace that is meant: the one that is named, or the only one that the caller reaches.
fn named(call: &Call, arguments: &mut Arguments) -> Result<String> {
    let names = agreements::list(&call.who, &call.app, Need::Read).map(|kept| kept.name());
    named_or_only(arguments, "workspace", "workspaces", names)
}

/// For how long to wait.
fn wait(call: &Call, arguments: &mut Arguments) -> Result<Duration> {
    call.app.waits().bounded(arguments.take("wait")?.unwrap_or(0.0))
}

pub(super) async fn read_policy(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let name = named(call, &mut arguments)?;
    let page = arguments.take_text("page")?;
    let source = arguments.take_text("source")?;
    let language = arguments.take_text("language")?;
    let after = arguments.take_text("after")?;
    arguments.finish()?;
    let (who, app) = (&call.who, &call.app);
    let Some(page) = page else {
        let listed = pages::list(who, app, &name, after.as_deref(), PAGES_MAX).await?;
        return Ok(Done::Told(Object::new().raw("pages", &pages_text(&listed)?).finish()));
    };
    let Some(source) = source else {
        let catalog = told(&policies::catalog(who, app, &name, &page).await?)?;
        return Ok(Done::Told(Object::new().raw("policies", &catalog).finish()));
    };
    let wanted = Wanted { page: &page, source: &source, language: language.as_deref() };
    Ok(document(&policies::made(who, app, &name, wanted).await?))
}

pub(super) async fn make_policy(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let name = named(call, &mut arguments)?;
    let page = required(arguments.take_text("page")?, "page")?;
    let source = required(arguments.take_text("source")?, "source")?;
    let language = arguments.take_text("language")?;
    let redo = arguments.take("redo")?.unwrap_or(false);
    let how = Making { wait: wait(call, &mut arguments)?, redo };
    arguments.finish()?;
    let wanted = Wanted { page: &page, source: &source, language: language.as_deref() };
    match policies::make(&call.who, &call.app, &name, wanted, how).await? {
        Asked::Made(made) => Ok(document(&made)),
        Asked::Making(job) => making(&job),
    }
}

/// A policy, with the beginning of its text.
fn document(document: &Document) -> Done {
    let part = beginning(&document.content, CONTENT_BYTES_MAX);
    let text = Object::new()
        .text("source", document.source.as_str())
        .text("title", &document.title)
        .optional("language", document.language.map(|language| language.as_str()))
        .raw("original", &document.original.to_string())
        .text("content", part)
        .raw("truncated", &(part.len() < document.content.len()).to_string());
    Done::Told(text.finish())
}

/// What is told of something that is being made.
fn making(making: &Job) -> Result<Done> {
    Ok(Done::Told(Object::new().raw("job", &job(making)?).finish()))
}

pub(super) async fn list_issues(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let name = named(call, &mut arguments)?;
    let page = required(arguments.take_text("page")?, "page")?;
    let (who, app) = (&call.who, &call.app);
    if let Some(issue) = arguments.take_text("issue")? {
        arguments.finish()?;
        let found = issues::show(who, app, &name, (&page, &issue)).await?;
        let text = Object::new().list("items", [issue_text(&found)?]).raw("next", "null");
        return Ok(Done::Told(text.raw("total", "1").finish()));
    }
    let limit = arguments.take("limit")?.unwrap_or(ISSUES_USUAL);
    arguments.set_number("limit", limit);
    let listing = read::<FilterParameters>(&arguments.text())?.listing()?;
    Ok(Done::Told(listed(&issues::list(who, app, &name, &page, &listing).await?)?))
}

pub(super) async fn move_issue(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let name = named(call, &mut arguments)?;
    let page = required(arguments.take_text("page")?, "page")?;
    let issue = required(arguments.take_text("issue")?, "issue")?;
    let condition = version_condition(&mut arguments)?;
    let (change, why) = read::<ChangeBody>(&arguments.text())?.change()?;
    let (who, app) = (&call.who, &call.app);
    let at = (page.as_str(), issue.as_str());
    let found = issues::change(who, app, &name, at, change, why, &condition).await?;
    Ok(Done::Told(issue_text(&found)?))
}

pub(super) async fn analyze(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let name = named(call, &mut arguments)?;
    let page = required(arguments.take_text("page")?, "page")?;
    let again = arguments.take("again")?.unwrap_or(false);
    let wait = wait(call, &mut arguments)?;
    arguments.finish()?;
    let (who, app) = (&call.who, &call.app);
    analysis::check(who, app, &name, &page).await?;
    let task = Task::Analyze { page: page_id(&page)?, again };
    let submitted = tasks::submit(who, app, &name, task, None).await?.job;
    if !wait.is_zero() {
        let statuses = tasks::watch(who, app, &name, &submitted.id).await?;
        ended(call, statuses, wait).await?;
    }
    let found = tasks::show(who, app, &name, &submitted.id).await?;
    if let Status::Trace(trace) = &found.status {
        return Err(tasks::failed(&trace.message, &found.id));
    }
    let analysis = match &found.status {
        Status::Result(result) => result.as_str(),
        _ => "null",
    };
    let text = Object::new().raw("analysis", analysis).raw("job", &job(&found)?);
    Ok(Done::Told(text.finish()))
}

pub(super) fn next(problem: &Problem) -> Option<String> {
    Some(
        match problem.code() {
            Code::UnknownPage => {
                "call agreement_read_policy without page to see which pages there are."
            }
            Code::UnknownPolicy => {
                "call agreement_read_policy without source to see which policies there are."
            }
            Code::NotMade => "call agreement_make_policy with the same page, source and language.",
            Code::UnknownIssue => "call agreement_list_issues to see which issues there are.",
            Code::IssueMoved | Code::PreconditionFailed => {
                "call agreement_list_issues with issue to see it as it is now, and decide again."
            }
            Code::TransitionRefused => "call agreement_move_issue with a state that it can become.",
            Code::IssueArchived => "call agreement_move_issue with archived: false first.",
            Code::ModelUnset => {
                "tell the user what is to be set; original policies can be read without it."
            }
            _ => return None,
        }
        .to_owned(),
    )
}
