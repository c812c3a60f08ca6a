//! Runs of a registry: what they would do, what they do, and what they did.

use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use keyward::registry::{Page, Plan, Progress, Registry, Run, RunStatus, SyncOptions, Synced};
use keyward::{Code, Event, Key, KeyRange, Prefix, Revision};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::reach;
use crate::feed::Quiet;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::registries::{Course, Kept, Stage};
use crate::services::Services;

/// How long it is waited for the id of a run that was begun.
const NAMING_TIME_MAX: Duration = Duration::from_secs(1);

/// What a run would do now. The newest commit is fetched for it; nothing else is changed.
pub async fn plan(
    who: &Identity,
    services: &Services,
    name: &str,
    options: &SyncOptions,
) -> Result<Plan> {
    let kept = reach(who, services, name, Need::Write)?;
    let time_max = services.waits().at_most(services.limits().answer_time_max);
    let planned = async {
        match tokio::time::timeout(time_max, kept.registry.plan(options)).await {
            Ok(plan) => Ok(plan?),
            Err(_) => Err(Problem::new(
                Code::TimedOut,
                "the plan took longer than there was time for",
            )
            .hint(
                "Ask again: what was fetched is at hand then. keyward sync --plan takes its time.",
            )),
        }
    };
    services.waits().during(who, time_max, services.lifecycle(), planned).await
}

/// What became of a request to run.
#[derive(Debug)]
pub enum Begun {
    /// It is under way; its id, if it is known yet.
    Running(Option<String>),
    /// It has ended.
    Ended(Box<Run>),
    /// The registry was at the newest commit.
    Unchanged { commit: String },
}

/// Begins a run, and waits for its end for up to some time. It goes on when nobody waits.
pub async fn begin(
    who: &Identity,
    services: &Services,
    name: &str,
    options: SyncOptions,
    wait: Duration,
) -> Result<Begun> {
    let need = if options.allow_mass_delete { Need::Admin } else { Need::Write };
    let kept = reach(who, services, name, need)?;
    let (began, mut course) = begun(services, kept, options).await?;
    if !matches!(began, Begun::Running(_)) || wait.is_zero() {
        return Ok(began);
    }
    let ended = async { Ok(course.ended(wait).await) };
    match services.waits().during(who, wait, services.lifecycle(), ended).await? {
        Stage::Ended(ended) => outcome((*ended)?),
        Stage::Beginning | Stage::Running => Ok(began),
    }
}

/// Begins a run, and finds out what it is called.
async fn begun(services: &Services, kept: &Kept, options: SyncOptions) -> Result<(Begun, Course)> {
    let mut runs = Box::pin(changes(services, kept, None)?);
    // From here on nothing is missed; a store that cannot be watched tells no name, and runs all the same.
    let _ = runs.next().await;
    let mut course = kept.begin(options)?;
    if let Stage::Ended(ended) = course.begun().await {
        return Ok((outcome((*ended)?)?, course));
    }
    // The run holds the registry's lock: what begins now is this one.
    let named = async {
        while let Some(told) = runs.next().await {
            if let Ok(Told::Run { run, .. }) = told
                && run.status == RunStatus::Running
            {
                return Some(run.id);
            }
        }
        None
    };
    let found = tokio::select! {
        biased;
        stage = course.ended(NAMING_TIME_MAX) => match stage {
            Stage::Ended(ended) => outcome((*ended)?)?,
            Stage::Beginning | Stage::Running => Begun::Running(None),
        },
        id = named => Begun::Running(id),
    };
    Ok((found, course))
}

fn outcome(ended: Synced) -> Result<Begun> {
    match ended {
        Synced::Done(run) => Ok(Begun::Ended(Box::new(run))),
        Synced::Unchanged { commit } => Ok(Begun::Unchanged { commit }),
        Synced::Busy { holder, since } => {
            let detail = format!("{holder} runs the registry since {since}");
            Err(Problem::new(Code::Busy, detail)
                .hint("Wait for its end, or look at what it does; nothing was begun.")
                .with("holder", holder)
                .with("since", since)
                .retryable())
        }
    }
}

/// A page of what runs did, newest first.
pub async fn list(
    who: &Identity,
    services: &Services,
    name: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Page<Run>> {
    Ok(reach(who, services, name, Need::Read)?.registry.runs(after, limit).await?)
}

/// What a run did.
pub async fn show(who: &Identity, services: &Services, name: &str, id: &str) -> Result<Run> {
    let found = reach(who, services, name, Need::Read)?.registry.run(id).await?;
    found.ok_or_else(|| {
        Problem::not_found(format!("the registry {name} has had no run {id:?}"))
            .hint("It may have been kept for as long as it was to be.")
    })
}

/// What is told to those who watch runs.
#[derive(Debug)]
pub enum Told {
    /// Everything up to here has been told.
    Reached(Revision),
    /// A run began, or ended.
    Run { revision: Revision, run: Box<Run> },
    /// A run of this server is so far.
    Progress(Progress),
    /// The history that was asked for is no longer kept.
    TooOld { earliest: Revision },
}

/// The runs of a registry as they begin and end, wherever they run, and how far those of this server are.
pub fn watch(
    who: &Identity,
    services: &Services,
    name: &str,
    since: Option<Revision>,
) -> Result<impl Stream<Item = Result<Told>> + Send + use<>> {
    let kept = reach(who, services, name, Need::Read)?;
    let progress = stream::unfold(kept.progress(), |mut seen: Receiver<Progress>| async move {
        loop {
            match seen.recv().await {
                Ok(progress) => return Some((Ok(Told::Progress(progress)), seen)),
                // Some was left out; the next tells more.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    });
    let changes = changes(services, kept, since)?;
    // The progress ends with the server only; the watch ends when the store's does.
    let ended = stream::once(async { None });
    let changes = changes.map(Some).chain(ended);
    let both = stream::select(changes, progress.map(Some));
    Ok(both.take_while(|told| std::future::ready(told.is_some())).filter_map(std::future::ready))
}

/// The runs of a registry as they begin and end.
fn changes(
    services: &Services,
    kept: &Kept,
    since: Option<Revision>,
) -> Result<impl Stream<Item = Result<Told>> + Send + use<>> {
    let registry = kept.registry.clone();
    let rows = Prefix::from_segments(["system", "registry", registry.name(), "run"]);
    let depth = rows.depth();
    let events = &services.store(kept.store())?.feed;
    let events = events.watch(KeyRange::under(&rows), since, Quiet::Sometimes, |_| true);
    let told =
        events.then(move |event| {
            let registry = registry.clone();
            async move {
                let event = match event {
                    Ok(event) => told(&registry, event.into_event(), depth).await,
                    Err(error) => Err(error.into()),
                };
                stream::iter(event.map_or_else(
                    |problem| vec![Err(problem)],
                    |all| all.into_iter().map(Ok).collect(),
                ))
            }
        });
    Ok(told.flatten())
}

async fn told(registry: &Registry, event: Event, depth: usize) -> Result<Vec<Told>> {
    let (revision, changes) = match event {
        Event::Reached(revision) => return Ok(vec![Told::Reached(revision)]),
        Event::TooOld { earliest } => return Ok(vec![Told::TooOld { earliest }]),
        Event::Changed { revision, changes } => (revision, changes),
    };
    let mut all = Vec::with_capacity(changes.len());
    for change in &changes {
        // What is gone by now is nothing to tell of.
        if let Some(run) = registry.run(&id(&change.key, depth)).await? {
            all.push(Told::Run { revision, run: Box::new(run) });
        }
    }
    Ok(all)
}

/// The id of the run whose row this is: its time and a number.
fn id(row: &Key, depth: usize) -> String {
    row.segments().skip(depth).collect::<Vec<_>>().join("-")
}
