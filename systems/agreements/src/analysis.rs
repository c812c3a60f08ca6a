//! Having a model compare an agreement with its policies, and keeping what it finds.

use std::sync::Arc;

use jiff::Timestamp;
use keyward_cache::Error as CacheError;
use keyward_engine::{Commit, ErrorKind, Json, Outcome, Put};
use keyward_extract::Format;
use keyward_locks::{Guard, Mode};
use keyward_models::{Models, Receipt, split_markdown};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::document::Made;
use crate::issue::{By, Finding, Issue, IssueId, Part, Reference, Severity, merge};
use crate::{
    Activity, BodyFormat, Course, Document, Error, Page, PageId, Result, SourceId, Workspace,
    places, prompts, translation,
};

/// What an analysis came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Analysis {
    /// When it was done.
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub at: Timestamp,
    /// Who wanted it.
    pub by: String,
    /// Issues that are new.
    pub found: usize,
    /// Known issues that were seen again and brought up to date.
    pub refreshed: usize,
    /// How many policies were compared.
    pub policies: usize,
    /// Policies that could not be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Unread>,
    /// Who compared them, and what it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
    /// What it was made of: the same again is not analysed again.
    pub fingerprint: String,
    /// Whether this is what an earlier one came to.
    #[serde(default)]
    pub unchanged: bool,
}

/// A policy that could not be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The policy.
    pub source: SourceId,
    /// Why.
    pub reason: String,
}

#[derive(Deserialize)]
struct Answer {
    issues: Vec<Answered>,
}

#[derive(Deserialize)]
struct Answered {
    title: String,
    severity: Severity,
    description: Vec<AnsweredPart>,
    known: Option<String>,
}

#[derive(Deserialize)]
struct AnsweredPart {
    text: Option<String>,
    excerpt: Option<String>,
}

/// How much of the known issues a model is told, in characters.
const KNOWN_CHARS_MAX: usize = 30_000;

impl Workspace {
    /// Has a model look for issues, tells it those that are known, and keeps what is new. What was
    /// analysed before, and has not changed since, is not analysed again unless it is asked for.
    pub async fn analyze(
        &self,
        page: &PageId,
        again: bool,
        by: &str,
        course: &Course,
    ) -> Result<Analysis> {
        let models = self.models()?;
        course.enter(Activity::Scanning, page.as_str()).await?;
        let found = self.found(page).await?;
        // Each under its own lock, before the issues are locked: nobody waits for both.
        let (documents, unread) = self.documents(&found, course).await?;
        let body = self.body(&found).await?;
        course.enter(Activity::Locking, "issues").await?;
        let guard = self.hold(page, &["issues"], Mode::Exclusive, "analyze").await?;
        let fingerprint = fingerprint(models, &body, &documents)?;
        if !again
            && let Some(earlier) = self.last_analysis(page).await?
            && earlier.fingerprint == fingerprint
        {
            guard.release().await?;
            return Ok(Analysis { unchanged: true, ..earlier });
        }
        let issues = self.issues().of(page)?;
        let known = issues.all().await?;
        let compared = Compared { page: &found, body: &body, known: &known };
        let (findings, receipts) = self.findings(models, &compared, &documents, course).await?;
        course.enter(Activity::Caching, "issues").await?;
        let changes = merge(&known, findings);
        let applied = issues.apply_findings(&guard, changes, &By::new(by)).await?;
        // A policy may have changed while the model thought: what was found in its older state is stale.
        if let Some(now) = self.source().page(page).await? {
            self.mark_issues(&now).await?;
        }
        let receipt = translation::joined(receipts);
        let analysis = Analysis {
            at: self.now(),
            by: by.to_owned(),
            found: applied.created.len(),
            refreshed: applied.refreshed.len(),
            policies: documents.len(),
            unread,
            made: receipt
                .map(|receipt| Ok::<_, Error>(Made { prompt: prompts::analyze()?.id(), receipt }))
                .transpose()?,
            fingerprint,
            unchanged: false,
        };
        self.keep_analysis(page, &guard, &analysis).await?;
        guard.release().await?;
        Ok(analysis)
    }

    /// What the last analysis came to, if there was one.
    pub async fn last_analysis(&self, page: &PageId) -> Result<Option<Analysis>> {
        let key = places::analysis(page)?;
        let Some(entry) = self.store().get(&key).await? else { return Ok(None) };
        let analysis = serde_json::from_str(entry.value.as_str());
        analysis.map(Some).map_err(|error| Error::damaged(&key, error))
    }

    async fn keep_analysis(&self, page: &PageId, guard: &Guard, analysis: &Analysis) -> Result<()> {
        let value =
            Json::from_value(analysis).map_err(|error| Error::Invalid(error.to_string()))?;
        let commit = Commit::new().put(places::analysis(page)?, Put::new(value));
        // Nothing but the lock is checked, and a lock that is lost is an error.
        let _: Outcome = guard.commit(commit).await?;
        Ok(())
    }

    /// The text of a page, as Markdown.
    async fn body(&self, page: &Page) -> Result<String> {
        match page.body_format {
            BodyFormat::Markdown => Ok(page.body.clone()),
            BodyFormat::Html if page.body.trim().is_empty() => Ok(String::new()),
            BodyFormat::Html => {
                let html = page.body.clone().into();
                Ok(self.extractor().extract_as(Format::Html, html).await?.markdown)
            }
        }
    }

    /// The policies of a page as they are compared, and those whose files cannot be read.
    async fn documents(
        &self,
        page: &Page,
        course: &Course,
    ) -> Result<(Vec<Arc<Document>>, Vec<Unread>)> {
        let (mut documents, mut unread) = (Vec::new(), Vec::new());
        for attachment in &page.attachments {
            let source = &attachment.source;
            let language = self.options().analysis_language;
            match self.policy(&page.id, source, language, course).await {
                Ok(document) => documents.push(Arc::new(document)),
                Err(error) if is_of_the_file(&error) => {
                    unread.push(Unread { source: source.clone(), reason: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
        Ok((documents, unread))
    }

    async fn findings(
        &self,
        models: &Models,
        compared: &Compared<'_>,
        documents: &[Arc<Document>],
        course: &Course,
    ) -> Result<(Vec<Finding>, Vec<Receipt>)> {
        let prompt = prompts::analyze()?;
        course.enter(Activity::Prompting, &prompt.id()).await?;
        let known = compared.known();
        let (mut findings, mut receipts) = (Vec::new(), Vec::new());
        course.enter(Activity::Analyzing, models.model()).await?;
        for (done, document) in documents.iter().enumerate() {
            course.progress(done, documents.len()).await?;
            for part in split_markdown(&document.content, self.options().analyze_chars_max) {
                let mut request = prompt.render(&[
                    ("page", &compared.page.title),
                    ("body", compared.body),
                    ("title", &document.title),
                    ("policy", part.trim()),
                    ("known", &known),
                ])?;
                request.schema = Some(prompts::analysis_schema());
                let (answer, receipt) = models.json::<Answer>(&request).await?;
                findings.extend(located(answer, document).await?);
                receipts.push(receipt);
            }
        }
        Ok((findings, receipts))
    }
}

/// What policies are compared with.
struct Compared<'a> {
    page: &'a Page,
    body: &'a str,
    known: &'a [Issue],
}

impl Compared<'_> {
    /// The known issues, as a model is told of them.
    fn known(&self) -> String {
        let mut told = String::new();
        for issue in self.known {
            let line = json!({
                "id": issue.id,
                "title": issue.title,
                "state": issue.state,
                "severity": issue.severity,
                "archived": issue.archived,
                "stale": issue.stale,
                "notes": issue.annotations,
            });
            let line = line.to_string();
            if told.len() + line.len() > KNOWN_CHARS_MAX {
                // What it is not told of is found again by comparing what it says.
                break;
            }
            told.push_str(&line);
            told.push('\n');
        }
        if told.is_empty() { "none".to_owned() } else { told }
    }
}

impl Answered {
    /// What it says, with passages looked up in the document.
    fn about(self, document: &Document) -> Finding {
        let parts = self.description.into_iter().filter_map(|part| match part {
            AnsweredPart { excerpt: Some(excerpt), .. } if !excerpt.trim().is_empty() => {
                let (source, title) = (document.source.clone(), document.title.clone());
                let text = &document.content;
                let mut reference = Reference::new(source, title, excerpt, document.modified, text);
                if let Some(language) = document.language {
                    reference.other.insert("language".to_owned(), language.as_str().into());
                }
                Some(Part::Reference(reference))
            }
            AnsweredPart { text: Some(text), .. } if !text.trim().is_empty() => {
                Some(Part::Text(text))
            }
            AnsweredPart { .. } => None,
        });
        Finding {
            // What is no id of an issue is taken for none: what it says is compared anyway.
            known: self.known.and_then(|id| IssueId::parse(&id).ok()),
            title: self.title,
            severity: self.severity,
            description: parts.collect(),
        }
    }
}

/// What a model said, with passages looked up where they stand: in a thread of its own, since looking for
/// one that is not quite there takes time.
async fn located(answer: Answer, document: &Arc<Document>) -> Result<Vec<Finding>> {
    let document = document.clone();
    let look = move || answer.issues.into_iter().map(|issue| issue.about(&document)).collect();
    tokio::task::spawn_blocking(look).await.map_err(|error| Error::Invalid(error.to_string()))
}

/// Whether it is one file that cannot be read, which is no reason to leave out the others.
fn is_of_the_file(error: &Error) -> bool {
    match error {
        Error::Extract(_) | Error::Cache(CacheError::Failed { .. }) => true,
        Error::Source { retryable, .. } => !retryable,
        Error::Store(error) => error.kind() == ErrorKind::LimitExceeded,
        _ => false,
    }
}

/// What an analysis is made of.
fn fingerprint(models: &Models, body: &str, documents: &[Arc<Document>]) -> Result<String> {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    };
    add(&prompts::analyze()?.id());
    add(models.provider());
    add(models.model());
    add(body);
    for document in documents {
        add(document.source.as_str());
        add(document.language.map_or("", |language| language.as_str()));
        add(&document.content);
    }
    Ok(data_encoding::HEXLOWER.encode(&hash.finalize()))
}
