//! The policies of a page: which there are, and what they say.

use std::time::{Duration, Instant};

use keyward::Code;
use keyward::agreements::{Catalog, Document, Error, Task};
use keyward::extract::Language;
use keyward::queue::{Job, Status, Submitted};

use super::tasks::{ended, failed};
use super::{page_id, reach, source_id};
use crate::agreements::{Kept, SELF};
use crate::api::jobs::touch;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::services::Services;

/// How often a policy is tried to be made under one id, while jobs are remembered. Then ids are random.
const TRIES_NAMED: usize = 16;

/// Something that is at hand, or is being made.
#[derive(Debug)]
pub enum Asked<T> {
    Made(T),
    /// It is not there yet; this job makes it.
    Making(Box<Job>),
}

/// The policies of a page, and what is known of each. Only reads.
pub async fn catalog(
    who: &Identity,
    services: &Services,
    name: &str,
    page: &str,
) -> Result<Catalog> {
    let kept = reach(who, services, name, Need::Read)?;
    Ok(kept.workspace.listed_policies(&page_id(page)?).await?)
}

/// Which policy is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'w> {
    pub page: &'w str,
    pub source: &'w str,
    /// In this language, else in the one it was written in.
    pub language: Option<&'w str>,
}

/// How a policy is made.
#[derive(Debug, Clone, Copy)]
pub struct Making {
    /// How long the caller waits for it.
    pub wait: Duration,
    /// Whether it is made again, also if it is there and up to date.
    pub redo: bool,
}

/// A policy in a language, if it was made and is up to date. Only reads: what is missing is made by
/// [`make`], which costs something and needs more than the permission to read.
pub async fn made(
    who: &Identity,
    services: &Services,
    name: &str,
    wanted: Wanted<'_>,
) -> Result<Document> {
    let kept = reach(who, services, name, Need::Read)?;
    let (page, source) = (page_id(wanted.page)?, source_id(wanted.source)?);
    let language = wanted.language.map(language).transpose()?;
    let cached = kept.workspace.cached_policy(&page, &source, language).await?;
    cached.ok_or_else(|| {
        let what = match language {
            Some(language) => format!("available in {}", language.name()),
            None => "extracted".to_owned(),
        };
        Problem::new(Code::NotMade, format!("the policy {source} of {page} is not yet {what}")).hint(
            "POST to the same path extracts and translates it; that needs write on the workspace.",
        )
    })
}

/// A policy in a language. If it is not there yet, or is made again, a job makes it, which all who ask for the
/// same meanwhile share.
pub async fn make(
    who: &Identity,
    services: &Services,
    name: &str,
    wanted: Wanted<'_>,
    making: Making,
) -> Result<Asked<Document>> {
    let kept = reach(who, services, name, Need::Write)?;
    let (page, source) = (page_id(wanted.page)?, source_id(wanted.source)?);
    let language = wanted.language.map(language).transpose()?;
    let Making { wait, mut redo } = making;
    let until = Instant::now() + wait;
    loop {
        match kept.workspace.cached_policy(&page, &source, language).await {
            Ok(Some(document)) if !redo => return Ok(Asked::Made(document)),
            Ok(_) => {}
            Err(error) => {
                if matches!(error, Error::UnknownPolicy { .. }) {
                    // What was made of it before it was gone is removed in the background.
                    kept.look_again(page).await;
                }
                return Err(error.into());
            }
        }
        let (page, source) = (page.clone(), source.clone());
        let id = submitted(kept, Task::Policy { page, source, language, redo }).await?;
        touch(who, &id);
        let left = until.saturating_duration_since(Instant::now());
        let job = ended(who, services, kept, &id, left).await?;
        match &job.status {
            Status::Activity(_) => return Ok(Asked::Making(Box::new(job))),
            Status::Trace(trace) => return Err(failed(&trace.message, &job.id)),
            // What it made may be out of date again. It was made again once, in any case.
            Status::Result(_) => redo = false,
        }
    }
}

/// The job that makes a policy: the one that is under way, else a new one.
async fn submitted(kept: &Kept, task: Task) -> Result<String> {
    let named = serde_json::to_vec(&task)
        .map_err(|error| Problem::new(Code::Internal, format!("the task has no name: {error}")))?;
    let name = &blake3::hash(&named).to_hex()[..32];
    for at in 0..TRIES_NAMED {
        let id = format!("policy-{name}-{at}");
        let submitted = kept.workspace.submit(task.clone(), SELF, Some(id)).await?;
        let Submitted::Duplicate { id, .. } = submitted else {
            return Ok(submitted.id().to_owned());
        };
        let status = kept.workspace.jobs().status(&id).await?;
        if status.is_some_and(|status| !status.is_final()) {
            return Ok(id);
        }
    }
    Ok(kept.workspace.submit(task, SELF, None).await?.id().to_owned())
}

/// A language as a request names it.
fn language(text: &str) -> Result<Language> {
    Language::parse(text).ok_or_else(|| {
        Problem::invalid(format!("{text:?} is no language"))
            .hint("Give a code of ISO 639-1, such as fr; nothing was done.")
    })
}
