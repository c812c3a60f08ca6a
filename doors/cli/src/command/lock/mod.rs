//! `keyward lock`: locks of other processes, and one's own.

mod acquire;
mod breaking;
mod claim;
mod exec;
mod list;
mod opened;

use clap::{Args, Subcommand};

pub use opened::who;

use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Hold, list and break locks; run a command under one
///
/// A lock is on paths below a ROOT, which is any key of the store: keyward lock exec page:7 issues
/// keeps others from the issues of page:7, from each of them (issues:4), and from the whole page;
/// without a path, the lock is on the whole root. If the schema declares a lock tree for the root,
/// only its paths can be locked, by the names it gives them. So it is for the pages of a workspace:
/// policies, policy:SOURCE, policy:SOURCE:LANGUAGE, issues and issue:ID.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward lock exec nightly -- ./backup.sh
  keyward lock acquire page:7 issues --for 10m
  keyward lock list"#)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Acquire(acquire::Arguments),
    Exec(exec::Arguments),
    List(list::Arguments),
    Break(breaking::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    match arguments.action {
        Action::Acquire(arguments) => acquire::run(arguments, target, output).await,
        Action::Exec(arguments) => exec::run(arguments, target, output).await,
        Action::List(arguments) => list::run(arguments, target, output).await,
        Action::Break(arguments) => breaking::run(arguments, target, output).await,
    }
}
