//! `keyward registry`: what is in registries, and what waits for their consumers.

mod dead_letters;
mod list;
mod migrate;
mod policies;
mod queue;
mod repair;
mod runs;
mod show;
mod work;

use clap::{Args, Subcommand};

use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;
use crate::registries::{Cache, Reach, Undeclared};

/// Look at registries, their runs, and what waits for their consumers
///
/// A registry holds documents that are kept in git; keyward sync brings it to what is there. Changes wait
/// in its queue until its consumers have been told: by keyward registry work, by a server, or by keyward
/// sync --deliver. What a consumer fails at too often is a dead letter.
///
/// Registries are declared in the config file, as [registries.NAME]. One that was synced without being
/// declared is known to its store, and only what reads documents needs --repository again.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry list
  keyward registry show policies
  keyward registry search policies leave
  keyward registry runs policies
  keyward registry requeue policies --all"#)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    cache: Cache,
    #[command(flatten)]
    undeclared: Undeclared,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::Arguments),
    Show(show::Arguments),
    Policies(policies::Arguments),
    Search(policies::Search),
    Runs(runs::Arguments),
    Queue(queue::Arguments),
    DeadLetters(dead_letters::Arguments),
    Requeue(dead_letters::Requeue),
    Drop(dead_letters::Drop),
    Work(work::Arguments),
    Repair(repair::Arguments),
    Migrate(migrate::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let reach = Reach::new(target, arguments.undeclared, arguments.cache)?;
    match arguments.action {
        Action::List(arguments) => list::run(arguments, &reach, output).await,
        Action::Show(arguments) => show::run(arguments, &reach, output).await,
        Action::Policies(arguments) => policies::run(arguments, &reach, output).await,
        Action::Search(arguments) => policies::search(arguments, &reach, output).await,
        Action::Runs(arguments) => runs::run(arguments, &reach, output).await,
        Action::Queue(arguments) => queue::run(arguments, &reach, output).await,
        Action::DeadLetters(arguments) => dead_letters::run(arguments, &reach, output).await,
        Action::Requeue(arguments) => dead_letters::requeue(arguments, &reach, output).await,
        Action::Drop(arguments) => dead_letters::drop(arguments, &reach, output).await,
        Action::Work(arguments) => work::run(arguments, &reach, output).await,
        Action::Repair(arguments) => repair::run(arguments, &reach, output).await,
        Action::Migrate(arguments) => migrate::run(arguments, &reach, output).await,
    }
}
