//! `keyward cache`: results computed once, and what is left of things that are gone.

mod clear;
mod drop;
mod get;
mod program;
mod purge;
mod run;
mod source;

use clap::{Args, Subcommand};
use keyward::cache::{Cache, Options};
use keyward::{Store, SystemClock};

use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Compute things once for all processes; drop and purge what is stale or gone
///
/// A cached value is an ordinary entry whose metadata say what it was made of. Whoever asks for it
/// with another source version finds it stale.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward cache run page7:text --source-version sha-1 -- ./extract page7.pdf
  keyward cache get page7:text
  keyward cache drop page7:text
  keyward cache purge --check ./page-exists"#)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Run(run::Arguments),
    Get(get::Arguments),
    Drop(drop::Arguments),
    Clear(clear::Arguments),
    Purge(purge::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    match arguments.action {
        Action::Run(arguments) => run::run(arguments, target, output).await,
        Action::Get(arguments) => get::run(arguments, target, output).await,
        Action::Drop(arguments) => drop::run(arguments, target, output).await,
        Action::Clear(arguments) => clear::run(arguments, target, output).await,
        Action::Purge(arguments) => purge::run(arguments, target, output).await,
    }
}

fn cache(store: Store) -> Result<Cache> {
    let options = Options { who: super::lock::who(), ..Options::default() };
    Ok(Cache::new(store, SystemClock, options)?)
}
