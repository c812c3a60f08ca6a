//! `keyward queue`: messages that workers work off.

mod drop;
mod list;
mod pause;
mod push;
mod stats;

use clap::{Args, Subcommand};

pub use self::list::write as write_message;
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Enqueue messages, and look at queues
///
/// A queue is made by its first message. Workers (keyward worker) claim messages one by one; each is
/// delivered at least once, and one completion of it is accepted. A message that fails too often
/// becomes a dead letter (keyward dead-letter).
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward queue push mails '{"to":"ada"}'
  keyward queue stats
  keyward worker --queue mails --exec ./send-mail"#)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Push(push::Arguments),
    List(list::Arguments),
    Peek(list::Peek),
    Stats(stats::Arguments),
    Pause(pause::Arguments),
    Resume(pause::Resume),
    Drop(drop::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    match arguments.action {
        Action::Push(arguments) => push::run(arguments, target, output).await,
        Action::List(arguments) => list::run(arguments, target, output).await,
        Action::Peek(arguments) => list::peek(arguments, target, output).await,
        Action::Stats(arguments) => stats::run(arguments, target, output).await,
        Action::Pause(arguments) => pause::run(arguments, target, output).await,
        Action::Resume(arguments) => pause::resume(arguments, target, output).await,
        Action::Drop(arguments) => drop::run(arguments, target, output).await,
    }
}
