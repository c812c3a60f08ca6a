//! `keyward sync`: brings a registry to what is in git.

mod served;
mod shown;

use std::io;
use std::sync::Mutex;

use clap::Args;
use indicatif::HumanCount;
use keyward::Code;
use keyward::registry::{
    Drained, Plan, Progress, Registry, RunStatus, SyncOptions, Synced, Trigger,
};
use serde::Serialize;

pub use self::shown::{counted, seconds, write_problems};
use self::shown::{write_plan, write_run};
use crate::args::Target;
use crate::confirm;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::progress::Progress as Bar;
use crate::registries::{Cache, Reach, Undeclared, short};

/// Bring a registry to what is in git
///
/// Looks at the newest commit of the repository, and finds what has to be added, updated and deleted in
/// the registry. --plan shows that and changes nothing; --apply does it, and tells the queue of the
/// registry of every change; without either, the plan is shown and you are asked. With --deliver consumers
/// are told at once, as keyward registry work and a server would do.
///
/// A repository that cannot be reached, or cannot be read whole, changes nothing. A file that is no valid
/// policy is named, and what the registry has under its name stays; the exit code is 10 then. A run that
/// was killed is finished by the next one, and two never run at once (12).
///
/// A registry is declared in the config file, as [registries.NAME], or by --repository and what goes with
/// it. With --server, one that the server keeps is planned and run by the server.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward sync policies --plan
  keyward sync policies --apply --deliver
  keyward sync --all --apply --json
  keyward -s embedded:./data sync docs --repository . --folder docs --apply
  keyward sync policies --apply --allow-mass-delete
  keyward --server http://127.0.0.1:7480 sync policies --apply"#)]
pub struct Arguments {
    /// The registry
    #[arg(required_unless_present = "all")]
    name: Option<String>,
    /// All registries that the config file declares, one after the other
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// Show what would be done, and change nothing
    #[arg(long, visible_alias = "dry-run", conflicts_with = "apply")]
    plan: bool,
    /// Do it
    #[arg(long)]
    apply: bool,
    /// Compare the whole tree, also where looking at what changed would do
    #[arg(long)]
    full: bool,
    /// Go on also if more would be deleted than the registry's settings allow
    #[arg(long)]
    allow_mass_delete: bool,
    /// Tell consumers of what waits for them, before the end
    #[arg(long, conflicts_with = "plan")]
    deliver: bool,
    #[command(flatten)]
    cache: Cache,
    #[command(flatten)]
    undeclared: Undeclared,
}

/// How a sync ended.
#[derive(Serialize)]
struct Ended<'s> {
    registry: &'s str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'s keyward::registry::Run>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered: Option<Drained>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    if !arguments.plan && !arguments.apply && !confirm::can_ask(output) {
        return Err(confirm::unsaid());
    }
    let reach = Reach::new(target, arguments.undeclared.clone(), arguments.cache.clone())?;
    let Some(name) = &arguments.name else {
        return every(&arguments, &reach, output).await;
    };
    one(name, &arguments, &reach, output).await
}

/// Every registry; one that fails does not keep the others from their turn.
async fn every(arguments: &Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let names = reach.names();
    if names.is_empty() {
        return Err(Failure::new(Code::UnknownRegistry, "no registries are declared")
            .hint(format!("Declare one in {}, as [registries.NAME].", reach.file())));
    }
    let mut first = Ok(());
    for name in names {
        let done = one(&name, arguments, reach, output).await;
        output.flush()?;
        if let Err(failure) = done {
            if failure.is_closed() {
                return Err(failure);
            }
            let failure = failure.at(&name);
            // Where errors cannot be told, the exit code still speaks.
            let _ = failure.tell(&mut io::stderr(), output.json());
            first = first.and(Err(failure.into_told()));
        }
    }
    first
}

async fn one(name: &str, arguments: &Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    if let Some(server) = reach.server()?.filter(|_| arguments.undeclared.is_empty())
        && (!reach.knows_repository(name) || served::keeps(name, &server).await?)
    {
        return match arguments.plan || arguments.apply {
            true => served::run(name, arguments, &server, output).await,
            false => Err(confirm::unsaid()),
        };
    }
    let options =
        SyncOptions { full: arguments.full, allow_mass_delete: arguments.allow_mass_delete };
    if arguments.apply {
        let registry = reach.open(name).await?;
        return apply(&registry, &options, arguments.deliver, output).await;
    }
    let registry = match arguments.plan {
        true => reach.to_plan(name).await?,
        false => reach.open(name).await?,
    };
    let plan = planned(&registry, &options, output).await?;
    if arguments.plan && output.json() {
        return output.write_json(&plan);
    }
    write_plan(&plan, arguments.plan, output)?;
    output.flush()?;
    if arguments.plan {
        return Ok(());
    }
    if !plan.steps.is_empty() {
        ask(&plan)?;
    }
    apply(&registry, &options, arguments.deliver, output).await
}

async fn planned(registry: &Registry, options: &SyncOptions, output: &Output) -> Result<Plan> {
    let _looking = Bar::working("looking at the repository", output);
    Ok(registry.plan(options).await?)
}

async fn apply(
    registry: &Registry,
    options: &SyncOptions,
    deliver: bool,
    output: &mut Output,
) -> Result {
    let synced = synced(registry, options, output).await?;
    let delivered = match (&synced, deliver) {
        (Synced::Busy { .. }, _) | (_, false) => None,
        _ => {
            let _telling = Bar::working("telling consumers", output);
            Some(registry.drain().await?)
        }
    };
    if output.json() {
        let (outcome, commit, run) = match &synced {
            Synced::Done(run) => ("done", run.commit.as_deref(), Some(run)),
            Synced::Unchanged { commit } => ("unchanged", Some(commit.as_str()), None),
            Synced::Busy { .. } => ("busy", None, None),
        };
        let registry = registry.name();
        output.write_json(&Ended { registry, outcome, commit, run, delivered })?;
    } else {
        tell(registry, &synced, delivered, output)?;
    }
    match synced {
        Synced::Busy { holder, since } => {
            let message = format!("another sync of {} runs, of {holder}", registry.name());
            let hint = format!("It runs since {since}; wait until it is done.");
            Err(Failure::new(Code::Busy, message).hint(hint))
        }
        Synced::Done(run) if run.status != RunStatus::Success => Err(Failure::told(Exit::Differs)),
        _ if delivered.is_some_and(|delivered| delivered.failed > 0) => {
            Err(Failure::told(Exit::Differs))
        }
        _ => Ok(()),
    }
}

/// Syncs, and shows how far it is.
async fn synced(registry: &Registry, options: &SyncOptions, output: &Output) -> Result<Synced> {
    /// What is shown, and of what.
    type Shown = Option<(std::mem::Discriminant<Progress>, Bar)>;
    let shown: Mutex<Shown> = Mutex::new(None);
    let seen = |progress: Progress| {
        let Ok(mut shown) = shown.lock() else { return };
        let kind = std::mem::discriminant(&progress);
        let (done, bar) = match progress {
            Progress::Fetching => (0, ("fetching", None)),
            Progress::Comparing { compared } => (compared, ("comparing", None)),
            Progress::Reading { read, total } => (read, ("reading", Some(total))),
            Progress::Applying { applied, total } => (applied, ("writing", Some(total))),
        };
        if shown.as_ref().is_none_or(|(other, _)| *other != kind) {
            // What was shown goes before something else is.
            *shown = None;
            let bar = match bar {
                ("fetching", _) => Bar::working("fetching", output),
                (what, total) => Bar::counted(what, "policies", total, output),
            };
            *shown = Some((kind, bar));
        }
        if let Some((_, bar)) = &*shown {
            bar.reach(done);
        }
    };
    Ok(registry.sync(Trigger::Hand, options, seen).await?)
}

fn tell(
    registry: &Registry,
    synced: &Synced,
    delivered: Option<Drained>,
    output: &mut Output,
) -> Result {
    let name = registry.name();
    match synced {
        Synced::Done(run) => write_run(name, run, output)?,
        Synced::Unchanged { commit } => {
            writeln!(output, "{name} is at {} already: nothing to do", short(commit))?;
        }
        Synced::Busy { .. } => {}
    }
    let Some(Drained { completed, failed, left }) = delivered else { return Ok(()) };
    if registry.settings().consumers.is_empty() {
        return writeln!(output, "{name} has no consumers: {} wait", counted(left, "change"));
    }
    write!(output, "told consumers of {}", counted(completed, "change"))?;
    if failed > 0 {
        write!(output, ", {} failed", counted(failed, "attempt"))?;
    }
    if left > 0 {
        write!(output, ", {} wait (keyward registry queue {name})", counted(left, "change"))?;
    }
    writeln!(output)
}

fn ask(plan: &Plan) -> Result {
    let steps = HumanCount(plan.steps.len() as u64);
    confirm::ask(format_args!("Apply these {steps} changes to {}?", plan.registry))
}
