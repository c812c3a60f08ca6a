//! The commands, one file each: its arguments, and what it does.

mod agent;
mod audit;
mod backup;
mod cache;
mod compact;
mod completions;
mod condition;
mod copy;
mod dead_letter;
mod del;
mod doctor;
mod export;
mod get;
mod import;
mod issue;
mod job;
mod key;
mod lock;
mod ls;
mod man;
mod mcp;
mod migrate;
mod page;
mod policy;
mod put;
mod queue;
mod record;
mod registry;
mod restore;
mod scan;
mod schema;
mod serve;
mod stats;
mod sync;
mod watch;
mod worker;

use clap::Subcommand;
use keyward::{Key, Prefix};

use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub enum Command {
    Put(put::Arguments),
    Get(get::Arguments),
    Del(del::Arguments),
    Ls(ls::Arguments),
    Scan(scan::Arguments),
    Watch(watch::Arguments),
    Stats(stats::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Migrate(migrate::Arguments),
    Doctor(doctor::Arguments),
    Copy(copy::Arguments),
    Backup(backup::Arguments),
    Restore(restore::Arguments),
    Compact(compact::Arguments),
    Serve(Box<serve::Arguments>),
    Mcp(mcp::Arguments),
    Key(key::Arguments),
    Audit(audit::Arguments),
    Schema(schema::Arguments),
    Record(Box<record::Arguments>),
    Agent(Box<agent::Arguments>),
    Sync(Box<sync::Arguments>),
    Registry(Box<registry::Arguments>),
    Page(Box<page::Arguments>),
    Policy(Box<policy::Arguments>),
    Issue(Box<issue::Arguments>),
    Lock(lock::Arguments),
    Cache(cache::Arguments),
    Queue(queue::Arguments),
    DeadLetter(dead_letter::Arguments),
    Job(job::Arguments),
    Worker(worker::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

impl Command {
    /// How many threads it needs beside its own; as many as there are CPUs, if it does not say.
    pub fn threads(&self) -> Option<usize> {
        match self {
            Self::Serve(_) | Self::Mcp(_) => None,
            // It sees to timers and Ctrl-C even while a command is busy.
            _ => Some(1),
        }
    }

    /// Does it.
    pub async fn run(self, target: &Target, output: &mut Output) -> Result {
        match self {
            Self::Put(arguments) => put::run(arguments, target, output).await,
            Self::Get(arguments) => get::run(arguments, target, output).await,
            Self::Del(arguments) => del::run(arguments, target, output).await,
            Self::Ls(arguments) => ls::run(arguments, target, output).await,
            Self::Scan(arguments) => scan::run(arguments, target, output).await,
            Self::Watch(arguments) => watch::run(arguments, target, output).await,
            Self::Stats(arguments) => stats::run(arguments, target, output).await,
            Self::Export(arguments) => export::run(arguments, target, output).await,
            Self::Import(arguments) => import::run(arguments, target, output).await,
            Self::Migrate(arguments) => migrate::run(arguments, target, output).await,
            Self::Doctor(arguments) => doctor::run(arguments, target, output).await,
            Self::Copy(arguments) => copy::run(arguments, target, output).await,
            Self::Backup(arguments) => backup::run(arguments, target, output).await,
            Self::Restore(arguments) => restore::run(arguments, target, output).await,
            Self::Compact(arguments) => compact::run(arguments, target, output).await,
            Self::Key(arguments) => key::run(arguments, target, output).await,
            Self::Audit(arguments) => audit::run(arguments, target, output).await,
            Self::Serve(arguments) => serve::run(*arguments, target, output).await,
            Self::Mcp(arguments) => mcp::run(arguments, target, output).await,
            Self::Schema(arguments) => schema::run(arguments, target, output).await,
            Self::Record(arguments) => record::run(*arguments, target, output).await,
            Self::Agent(arguments) => agent::run(*arguments, target, output).await,
            Self::Sync(arguments) => sync::run(*arguments, target, output).await,
            Self::Registry(arguments) => registry::run(*arguments, target, output).await,
            Self::Page(arguments) => page::run(*arguments, target, output).await,
            Self::Policy(arguments) => policy::run(*arguments, target, output).await,
            Self::Issue(arguments) => issue::run(*arguments, target, output).await,
            Self::Lock(arguments) => lock::run(arguments, target, output).await,
            Self::Cache(arguments) => cache::run(arguments, target, output).await,
            Self::Queue(arguments) => queue::run(arguments, target, output).await,
            Self::DeadLetter(arguments) => dead_letter::run(arguments, target, output).await,
            Self::Job(arguments) => job::run(arguments, target, output).await,
            Self::Worker(arguments) => worker::run(arguments, target, output).await,
            Self::Completions(arguments) => completions::run(arguments, output),
            Self::Man(arguments) => man::run(arguments, output),
        }
    }
}

/// A key as an argument.
fn key(text: &str) -> Result<Key> {
    Key::parse(text).map_err(|error| Failure::unreadable("key", &error))
}

/// A prefix as an argument; none is every key.
fn prefix(text: Option<&str>) -> Result<Prefix> {
    Prefix::parse(text.unwrap_or_default()).map_err(|error| Failure::unreadable("prefix", &error))
}

/// What lies below a prefix, in words.
fn below(prefix: &Prefix) -> String {
    if *prefix == Prefix::all() {
        "in the whole store".to_owned()
    } else {
        format!("below {prefix}")
    }
}
