//! `keyward issue`: what has to be settled before an agreement is done.

mod analyze;
mod change;
mod create;
mod export;
mod list;
mod show;
mod shown;

use clap::{Args, Subcommand};
use keyward::agreements::{IssueId, Severity, State};

use crate::agreements::{Desk, Named, Use};
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Keep track of what has to be settled before an agreement is done
///
/// An issue is found by a model (keyward issue analyze) or made by hand. It is pending, active, blocked or
/// resolved; what may become of it is a table, and everything that happens to it is kept, with who did it. One
/// whose policy has changed since is stale.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward issue list supply-2026 --state pending,active
  keyward issue create supply-2026 --title 'Liability is not limited' --severity high
  keyward issue move supply-2026 f47ac10b-58cc-4372-a567-0e02b2c3d479 active --why 'Ada asks the supplier'
  keyward issue analyze supply-2026
  keyward issue export supply-2026 --format csv > issues.csv"#)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    named: Named,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::Arguments),
    Show(show::Arguments),
    Create(create::Arguments),
    Classify(change::Classify),
    Annotate(change::Annotate),
    Move(change::Move),
    Archive(change::Archive),
    Analyze(analyze::Arguments),
    Export(export::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let Arguments { action, named } = arguments;
    let purpose = match &action {
        Action::List(_) | Action::Show(_) | Action::Export(_) => Use::Looking,
        Action::Analyze(analyze) if analyze.only_looks() => Use::Looking,
        _ => Use::Working,
    };
    let mut desk = Desk::open(target, &named, purpose, output).await?;
    let done = match action {
        Action::List(arguments) => list::run(arguments, &desk, output).await,
        Action::Show(arguments) => show::run(arguments, &desk, output).await,
        Action::Create(arguments) => create::run(arguments, &desk, output).await,
        Action::Classify(arguments) => change::classify(arguments, &desk, output).await,
        Action::Annotate(arguments) => change::annotate(arguments, &desk, output).await,
        Action::Move(arguments) => change::transition(arguments, &desk, output).await,
        Action::Archive(arguments) => change::archive(arguments, &desk, output).await,
        Action::Analyze(arguments) => analyze::run(arguments, &mut desk, output).await,
        Action::Export(arguments) => export::run(arguments, &desk, output).await,
    };
    done.and(desk.leave(output).await)
}

/// An issue's id as an argument.
fn issue_id(text: &str) -> Result<IssueId, String> {
    IssueId::parse(text).map_err(|error| error.to_string())
}

/// A state as an argument.
fn state(text: &str) -> Result<State, String> {
    let found = State::ALL.into_iter().find(|state| state.as_str() == text);
    found.ok_or_else(|| format!("{text:?} is none of pending, active, blocked and resolved"))
}

/// A severity as an argument, by its name or its number.
fn severity(text: &str) -> Result<Severity, String> {
    let all = [Severity::Low, Severity::Medium, Severity::High];
    let found = all
        .into_iter()
        .find(|severity| severity.as_str() == text || u8::from(*severity).to_string() == text);
    found.ok_or_else(|| format!("{text:?} is none of low (1), medium (2) and high (3)"))
}
