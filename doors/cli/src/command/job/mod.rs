//! `keyward job`: messages whose course and result are kept.

mod cancel;
mod list;
mod shown;
mod status;
mod submit;
mod watch;

use clap::{Args, Subcommand};

use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Submit jobs, and follow them
///
/// A job is a message in a queue whose status can be read: an activity while it is under way, then
/// its result, or the trace of a failure, kept for a time after its end.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward job submit reports '{"month":"2026-01"}'
  keyward job watch 019b76da800000000001c4f1a2b3d4e5f6a
  keyward worker --queue reports --exec ./make-report"#)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Submit(submit::Arguments),
    Status(status::Arguments),
    Watch(watch::Arguments),
    Cancel(cancel::Arguments),
    List(list::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    match arguments.action {
        Action::Submit(arguments) => submit::run(arguments, target, output).await,
        Action::Status(arguments) => status::run(arguments, target, output).await,
        Action::Watch(arguments) => watch::run(arguments, target, output).await,
        Action::Cancel(arguments) => cancel::run(arguments, target, output).await,
        Action::List(arguments) => list::run(arguments, target, output).await,
    }
}
