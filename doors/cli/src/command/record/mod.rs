//! `keyward record`: what a schema declares, read and written in a caller's name.

mod address;
mod batch;
mod create;
mod delete;
mod explain;
mod get;
mod history;
mod list;
mod merge;
mod near;
mod operation;
mod paging;
mod put;
mod query;
mod question;
mod reach;
mod restore;
mod shown;
mod within;
mod written;

use clap::{Args, Subcommand};

use self::reach::Reach;
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Read and write the records that a schema declares
///
/// A record is named by its space and the variables of the space's key: where the schema says
/// key = "user:{user}:notes:{note}", keyward record get notes user=ada note=n1. With --as ada the
/// owner need not be said, and only what ada may do is done; with --anonymous, only what anybody may
/// do. Without either you are the operator, whom no rule holds back.
///
/// The schema says where each store is. -s names another place for one command, if the schema has
/// one store; where the schema names no place, -s, KEYWARD_STORE or the config file does.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward record put notes note=n1 '{"title":"Keys"}' --as ada
  keyward record get notes note=n1 --as ada
  keyward record list notes --as ada
  keyward record query notes notes_by_title --prefix k --as ada
  keyward record near places --lat 52.52 --lon 13.405 --radius 5km"#)]
pub struct Arguments {
    #[command(flatten)]
    asking: reach::Asking,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Get(get::Arguments),
    Put(put::Arguments),
    Create(create::Arguments),
    Merge(merge::Arguments),
    Delete(delete::Arguments),
    Batch(batch::Arguments),
    List(list::Arguments),
    Query(query::Arguments),
    Explain(explain::Arguments),
    Near(near::Arguments),
    Within(within::Arguments),
    History(history::Arguments),
    Restore(restore::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let reach = Reach::new(target, arguments.asking).await?;
    match arguments.action {
        Action::Get(arguments) => get::run(arguments, &reach, output).await,
        Action::Put(arguments) => put::run(arguments, &reach, output).await,
        Action::Create(arguments) => create::run(arguments, &reach, output).await,
        Action::Merge(arguments) => merge::run(arguments, &reach, output).await,
        Action::Delete(arguments) => delete::run(arguments, &reach, output).await,
        Action::Batch(arguments) => batch::run(arguments, &reach, output).await,
        Action::List(arguments) => list::run(arguments, &reach, output).await,
        Action::Query(arguments) => query::run(arguments, &reach, output).await,
        Action::Explain(arguments) => explain::run(arguments, &reach, output).await,
        Action::Near(arguments) => near::run(arguments, &reach, output).await,
        Action::Within(arguments) => within::run(arguments, &reach, output).await,
        Action::History(arguments) => history::run(arguments, &reach, output).await,
        Action::Restore(arguments) => restore::run(arguments, &reach, output).await,
    }
}
