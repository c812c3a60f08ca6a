//! `keyward agent`: what agents keep for users.

mod clear;
mod copy;
mod delete;
mod documents;
mod entries;
mod export;
mod get;
mod history;
mod import;
mod keys;
mod log;
mod namespace;
mod namespaces;
mod paging;
mod patch;
mod prepare;
mod reach;
mod redact;
mod restore;
mod search;
mod set;
mod settings;
mod shown;
mod skipped;
mod stats;
mod written;

use clap::{Args, Subcommand};

use self::reach::Reach;
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Read and write what agents keep for users
///
/// A user has namespaces, a namespace has entries: a key (any text, such as src/main.py), a JSON value,
/// metadata, who made it and who accessed it last. With --agent a command is done in an agent's name:
/// reads then count as accesses, and history says who did what. With --run it is also written to the
/// run's log.
///
/// The entries are in the store that other commands use here, unless a schema with several stores declares the
/// space agent_data_store in another one.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent set greeting '"hello"' --agent planner
  keyward agent get greeting --agent writer
  keyward agent keys -n files:apache/repo
  keyward agent search --filter '{"metadata.source":"crawler"}'
  keyward agent log r1"#)]
pub struct Arguments {
    #[command(flatten)]
    asking: reach::Asking,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Get(get::Arguments),
    Set(set::Arguments),
    Patch(patch::Arguments),
    Delete(delete::Arguments),
    Keys(keys::Arguments),
    Namespaces(namespaces::Arguments),
    Entries(entries::Arguments),
    Search(search::Arguments),
    History(history::Arguments),
    Restore(restore::Arguments),
    Redact(redact::Arguments),
    Stats(stats::Arguments),
    Settings(settings::Arguments),
    Clear(clear::Arguments),
    Log(log::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Copy(copy::Arguments),
    Prepare(prepare::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let reach = Reach::new(target, arguments.asking);
    match arguments.action {
        Action::Get(arguments) => get::run(arguments, &reach, output).await,
        Action::Set(arguments) => set::run(arguments, &reach, output).await,
        Action::Patch(arguments) => patch::run(arguments, &reach, output).await,
        Action::Delete(arguments) => delete::run(arguments, &reach, output).await,
        Action::Keys(arguments) => keys::run(arguments, &reach, output).await,
        Action::Namespaces(arguments) => namespaces::run(arguments, &reach, output).await,
        Action::Entries(arguments) => entries::run(arguments, &reach, output).await,
        Action::Search(arguments) => search::run(arguments, &reach, output).await,
        Action::History(arguments) => history::run(arguments, &reach, output).await,
        Action::Restore(arguments) => restore::run(arguments, &reach, output).await,
        Action::Redact(arguments) => redact::run(arguments, &reach, output).await,
        Action::Stats(arguments) => stats::run(arguments, &reach, output).await,
        Action::Settings(arguments) => settings::run(arguments, &reach, output).await,
        Action::Clear(arguments) => clear::run(arguments, &reach, output).await,
        Action::Log(arguments) => log::run(arguments, &reach, output).await,
        Action::Export(arguments) => export::run(arguments, &reach, output).await,
        Action::Import(arguments) => import::run(arguments, &reach, output).await,
        Action::Copy(arguments) => copy::run(arguments, &reach, output).await,
        Action::Prepare(arguments) => prepare::run(arguments, target, output).await,
    }
}
