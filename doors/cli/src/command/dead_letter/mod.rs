//! `keyward dead-letter`: messages that nobody could work off.

mod chosen;
mod list;
mod show;

use clap::{Args, Subcommand};

pub use self::show::line;
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Look at messages that failed too often, put them back, or drop them
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward dead-letter list mails
  keyward dead-letter requeue mails --all"#)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::Arguments),
    Show(show::Arguments),
    Requeue(chosen::Requeue),
    Drop(chosen::Drop),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    match arguments.action {
        Action::List(arguments) => list::run(arguments, target, output).await,
        Action::Show(arguments) => show::run(arguments, target, output).await,
        Action::Requeue(arguments) => chosen::requeue(arguments, target, output).await,
        Action::Drop(arguments) => chosen::drop(arguments, target, output).await,
    }
}
