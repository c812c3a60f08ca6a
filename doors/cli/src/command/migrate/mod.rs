//! `keyward migrate`: bringing a store to what a schema declares, while others use it.

mod list;
mod plan;
mod rekey;
mod running;
mod transform;

use std::num::NonZeroU32;

pub use running::Waiting;

use clap::{Args, Subcommand};

use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Make and remove indexes, give records other keys, change values
///
/// Without a subcommand, the schema's indexes are compared with those that the stores have: new ones
/// are built and changed ones rebuilt, while others read and write. An index that the schema does not
/// declare is told of and stays, since a program with another schema may ask it, until --drop names
/// it; indexes of spaces that the schema does not declare are never touched otherwise.
/// A unique index that another program keeps already, with bare ids in its entries, is adopted: each entry
/// that fits its record is rewritten. If one does not fit, or two records have one value, nothing is written;
/// --set-aside moves entries that do not fit out of the way. Nothing is done without --yes; what would be done is shown. A migration that is interrupted or
/// killed goes on when it is run again. At its end it checks what it did; exits with 10 if something
/// could not be done.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = r#"Examples:
  keyward migrate
  keyward migrate --yes --rate 500
  keyward migrate --drop notes_by_title --yes
  keyward migrate --set-aside --yes
  keyward migrate list"#
)]
pub struct Arguments {
    /// Drop this index, which the schema does not declare; may be repeated
    #[arg(long, value_name = "INDEX")]
    drop: Vec<String>,
    /// Move entries of another program's index that do not fit their records below system:set-aside
    #[arg(long)]
    set_aside: bool,
    #[command(flatten)]
    how: How,
    #[command(subcommand)]
    action: Option<Action>,
}

/// How a migration is run.
#[derive(Debug, Args)]
struct How {
    /// Do it, instead of showing what would be done
    #[arg(long)]
    yes: bool,
    /// Show what would be done; the same as without --yes
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Name at most so many problems of a dry run; --json names the first 1000
    #[arg(long, value_name = "N", default_value_t = 5)]
    problems: usize,
    /// At most so many records each second
    #[arg(long, value_name = "N")]
    rate: Option<NonZeroU32>,
}

#[derive(Debug, Subcommand)]
enum Action {
    Rekey(rekey::Arguments),
    Transform(transform::Arguments),
    List(list::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let data = target.data().await?;
    match arguments.action {
        None => {
            let (drop, set_aside) = (&arguments.drop, arguments.set_aside);
            plan::run(drop, set_aside, &arguments.how, &data, output).await
        }
        Some(Action::Rekey(arguments)) => rekey::run(arguments, &data, output).await,
        Some(Action::Transform(arguments)) => transform::run(arguments, &data, output).await,
        Some(Action::List(arguments)) => list::run(arguments, &data, output).await,
    }
}
