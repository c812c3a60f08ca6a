//! An agreement under work, to look at: a page with three policies, and some issues. What would be asked of a
//! model is answered by a script, which says so.

use std::sync::Arc;

use keyward::agreements::source::{SourceSettings, Uploads};
use keyward::agreements::{
    BodyFormat, By, Course, Filter, NewIssue, Options, PageId, PageIssues, Part, Reference,
    Severity, Sort, SourceId, State, Workspace,
};
use keyward::extract::Language;
use keyward::models::{self, Models, Request, Scripted};
use keyward::{Data, SystemClock};
use keyward_server::WorkspaceConfig;
use serde_json::json;

use super::STORE;
use crate::agreements::{sandbox, settings_of};
use crate::failure::Result;

/// The name of the workspace.
const NAME: &str = "demo";
const PAGE: &str = "joint-doctorate";
const TITLE: &str = "Agreement on joint doctoral studies";
/// Who made it all.
const BY: &str = "demo";

/// Policies: their ids, their kinds, and what is in them.
const POLICIES: [(&str, &str, &[u8]); 3] = [
    ("supervision.md", "text/markdown", include_bytes!("agreements/supervision.md")),
    ("data.html", "text/html", include_bytes!("agreements/data.html")),
    ("convention.pdf", "application/pdf", include_bytes!("agreements/convention.pdf")),
];

/// Issues: their titles, how much they weigh, what they are, the policy and the passage, where they stand.
const ISSUES: [(&str, Severity, &str, &str, &str, State); 3] = [
    (
        "Who may publish research data?",
        Severity::High,
        "The agreement publishes data unless the candidate objects; the policy asks the supervisors.",
        "data.html",
        "Daten werden nur veröffentlicht, wenn die Betreuenden schriftlich zugestimmt haben.",
        State::Pending,
    ),
    (
        "Meetings are rarer than the policy allows",
        Severity::Medium,
        "Once a month in the agreement, but:",
        "supervision.md",
        "Supervisors meet their candidates every two weeks, in person or by video.",
        State::Active,
    ),
    (
        "Nothing is said about disputes",
        Severity::Low,
        "The agreement could refer to the policy.",
        "supervision.md",
        "the ombudsperson of the faculty is asked",
        State::Resolved,
    ),
];

/// The workspace, as a server is told of it.
pub fn workspace() -> Result<WorkspaceConfig> {
    let mut settings = settings_of(SourceSettings::Uploads(true))?;
    settings.store = Some(STORE.to_owned());
    let (models, sandbox) = (Some(Arc::new(scripted())), Some(sandbox()?));
    Ok(WorkspaceConfig { name: NAME.to_owned(), settings, models, sandbox })
}

/// Puts in what is to be looked at, as far as it is not there already.
pub async fn fill(data: &Data, config: &WorkspaceConfig) -> Result {
    let store = data.records(STORE).await?.store().clone();
    let WorkspaceConfig { settings, models, sandbox, .. } = config.clone();
    let clock = Arc::new(SystemClock);
    let workspace = settings.open_with(store, clock, sandbox, models, Options::default())?;
    let page = PageId::new(PAGE)?;
    if let Some(uploads) = workspace.uploads() {
        put(uploads, &workspace, &page).await?;
    }
    note(&workspace, &page).await
}

async fn put(uploads: &Uploads, workspace: &Workspace, page: &PageId) -> Result {
    let body = include_str!("agreements/page.md");
    let there = match workspace.source().page(page).await? {
        Some(there) => there,
        None => uploads.put_page(page, TITLE, body, BodyFormat::Markdown).await?,
    };
    for (source, media_type, bytes) in POLICIES {
        let source = SourceId::new(source)?;
        if there.attachments.iter().all(|attached| attached.source != source) {
            uploads.attach(page, &source, source.as_str(), Some(media_type), bytes).await?;
        }
    }
    Ok(())
}

/// Makes the issues, each once.
async fn note(workspace: &Workspace, page: &PageId) -> Result {
    let issues: PageIssues = workspace.issues().of(page)?;
    let all = Filter { archived: keyward::agreements::Archived::Included, ..Filter::default() };
    let known = issues.list(&all, Sort::Title, None, PageIssues::PAGE_MAX).await?.items;
    let by = By::new(BY);
    for (title, severity, text, source, excerpt, state) in ISSUES {
        if known.iter().any(|known| known.issue.title == title) {
            continue;
        }
        let source = SourceId::new(source)?;
        let document = workspace.policy(page, &source, None, &Course::untold()).await?;
        let reference =
            Reference::new(source, &document.title, excerpt, document.modified, &document.content);
        let description = vec![Part::Text(text.to_owned()), Part::Reference(reference)];
        let made = issues.create(NewIssue::new(title, severity).describe(description), &by).await?;
        if state != State::Pending {
            issues.transition(made.issue.id, state, &by).await?;
        }
    }
    Ok(())
}

/// What answers instead of a model, and says so.
fn scripted() -> Models {
    Models::new(Scripted::new(answer), models::Options::default(), 0)
}

fn answer(request: &Request) -> Result<String, models::Error> {
    let asks_for = |member: &str| {
        request.schema.as_ref().is_some_and(|schema| schema["properties"][member].is_object())
    };
    if asks_for("markdown") {
        return Ok(translated(&request.prompt));
    }
    if asks_for("issues") {
        return Ok(analysed(&request.prompt));
    }
    Err(models::Error::Invalid("the demo's script knows no answer to this".to_owned()))
}

/// The text as it is, under a title that says so.
fn translated(prompt: &str) -> String {
    let into =
        |language: &Language| prompt.starts_with(&format!("Translate into {}.", language.name()));
    let code = Language::all().find(into).map_or("?", |language| language.as_str());
    let framed = models::framed(prompt);
    let (title, text) = match framed[..] {
        [title, text] => (title, text),
        _ => ("", prompt),
    };
    let markdown = format!(
        "{text}\n\n> [scripted {code}] No model was asked: a script stands here for a translation.\n"
    );
    json!({ "title": format!("[scripted {code}] {title}"), "markdown": markdown }).to_string()
}

/// One issue of the policy that says so, unless it is known.
fn analysed(prompt: &str) -> String {
    const EXCERPT: &str = "Drafts are answered in writing, within three weeks";
    const FOUND: &str = "[scripted] Nobody says when drafts are answered";
    let (compared, known) = prompt.split_once("# Known issues").unwrap_or((prompt, ""));
    if !compared.contains(EXCERPT) || known.contains(FOUND) {
        return json!({ "issues": [] }).to_string();
    }
    let issue = json!({
        "title": FOUND,
        "severity": 2,
        "description": [
            { "text": "The agreement sets no time for feedback; the policy does:", "excerpt": null },
            { "text": null, "excerpt": EXCERPT },
        ],
        "known": null,
    });
    json!({ "issues": [issue] }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_says_that_it_is_one() {
        let told = translated(
            "Translate into French.\n\nTitle:\n\n[begin 7]\nTerms\n[end 7]\n\nText:\n\n\
             [begin 7]\n# Terms\n\nPay.\n[end 7]",
        );
        assert!(told.contains(r#""title":"[scripted fr] Terms""#), "{told}");
        assert!(told.contains("# Terms\\n\\nPay."), "{told}");
        let policy = include_str!("agreements/supervision.md");
        assert!(analysed(&format!("{policy}\n# Known issues\n\nnone")).contains("[scripted]"));
        let known =
            format!("{policy}\n# Known issues\n\n[scripted] Nobody says when drafts are answered");
        assert_eq!(analysed(&known), r#"{"issues":[]}"#);
    }
}
