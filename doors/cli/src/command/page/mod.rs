//! `keyward page`: agreements under work, and what is attached to them.

mod adopt;
mod attach;
mod clear;
mod list;
mod policies;
mod put;
mod show;
mod work;

use clap::{Args, Subcommand};
use keyward::agreements::{PageId, SourceId};

use crate::agreements::{Desk, Named, Use};
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Look at agreements under work, and at the policies attached to them
///
/// A page is an agreement: a text, and the files attached to it, its policies. Pages come from a folder (a
/// directory each, with page.md and other files), from uploads, or from Confluence. keyward policy get gives
/// a policy as Markdown, also translated; keyward issue keeps track of what has to be settled.
///
/// A workspace is declared in the config file, as [agreements.NAME]; --folder DIR needs none. With --server,
/// it is one that the server keeps.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward page list --folder ./agreements
  keyward page policies supply-2026
  keyward page attach supply-2026 terms.pdf
  keyward --server http://127.0.0.1:7480 page list"#)]
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
    Policies(policies::Arguments),
    Put(put::Arguments),
    Delete(put::Delete),
    Attach(attach::Arguments),
    Detach(attach::Detach),
    Clear(clear::Arguments),
    Adopt(adopt::Arguments),
    Purge(clear::Purge),
    Work(work::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let Arguments { action, named } = arguments;
    let purpose = match &action {
        Action::List(_) | Action::Show(_) => Use::Looking,
        Action::Adopt(arguments) if !arguments.writes() => Use::Looking,
        _ => Use::Working,
    };
    let mut desk = Desk::open(target, &named, purpose, output).await?;
    let done = match action {
        Action::List(arguments) => list::run(arguments, &desk, output).await,
        Action::Show(arguments) => show::run(arguments, &desk, output).await,
        Action::Policies(arguments) => policies::run(arguments, &mut desk, output).await,
        Action::Put(arguments) => put::run(arguments, &desk, output).await,
        Action::Delete(arguments) => put::delete(arguments, &desk, output).await,
        Action::Attach(arguments) => attach::run(arguments, &desk, output).await,
        Action::Detach(arguments) => attach::detach(arguments, &desk, output).await,
        Action::Clear(arguments) => clear::run(arguments, &mut desk, output).await,
        Action::Adopt(arguments) => adopt::run(arguments, &desk, output).await,
        Action::Purge(arguments) => clear::purge(arguments, &mut desk, output).await,
        Action::Work(arguments) => work::run(arguments, &desk, output).await,
    };
    done.and(desk.leave(output).await)
}

/// A page's id as an argument.
pub(super) fn page_id(text: &str) -> Result<PageId, String> {
    PageId::new(text).map_err(|error| error.to_string())
}

/// A policy's id as an argument.
pub(super) fn source_id(text: &str) -> Result<SourceId, String> {
    SourceId::new(text).map_err(|error| error.to_string())
}
