//! `keyward schema`: the schema file itself.

mod check;
mod diff;
mod docs;
mod init;
mod lint;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use keyward::Data;
use keyward::schema::{Problems, Schema};

use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::store_choice::Choice;

/// Check, document and compare schema files
///
/// A schema file declares what stores hold: the shape of keys, who owns records, what values look
/// like, how they are indexed, how long they live. Without FILE, the schema is looked for as
/// keyward --help says; with --server, it is the server's.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward schema init
  keyward schema check
  keyward schema docs -o SCHEMA.md
  keyward schema diff released.toml keyward.schema.toml"#)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Init(init::Arguments),
    Check(check::Arguments),
    Lint(lint::Arguments),
    Docs(docs::Arguments),
    Diff(diff::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    match arguments.action {
        Action::Init(arguments) => init::run(arguments, target, output),
        Action::Check(arguments) => check::run(arguments, target, output).await,
        Action::Lint(arguments) => lint::run(arguments, target, output).await,
        Action::Docs(arguments) => docs::run(arguments, target, output).await,
        Action::Diff(arguments) => diff::run(arguments, output),
    }
}

/// The code of a coordinator that cannot be one.
const COORDINATOR: &str = "coordinator";

/// What a schema is called, and the schema itself with its warnings, or what is wrong with it.
type Chosen = (PathBuf, Result<(Schema, Problems), Problems>);

/// The schema file that was named, or else the one that is meant, or the server's.
async fn chosen(named: Option<PathBuf>, target: &Target) -> Result<Chosen> {
    if named.is_none()
        && let Some(schema) = target.served_schema().await?
    {
        let server = target.server()?.map_or(String::new(), |server| server.name().to_owned());
        return Ok((PathBuf::from(server), Ok((schema, Problems::new(Vec::new())))));
    }
    let path = named.map_or_else(|| target.schema_file(), Ok)?;
    let read = Schema::load_with_warnings(&path);
    Ok((path, read))
}

fn load(path: &Path) -> Result<Schema> {
    Schema::load(path).map_err(Failure::from)
}

/// What of a schema does not fit its stores, as far as anybody says where they are.
fn misfits(schema: &Schema, path: &Path, target: &Target) -> Result<Problems> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let data = Data::beside(schema.clone(), folder);
    let placed = match target.server()? {
        Some(_) => data,
        None => Choice::declared(data.clone(), path, target).map_or(data, |choice| choice.data),
    };
    let mut problems: Vec<_> = placed.check()?.into_iter().collect();
    // The line with a coordinator is wrong also where -s or the environment moves its store.
    let declared = Data::beside(schema.clone(), folder).check()?.into_iter();
    let of_coordinators = declared.filter(|problem| problem.code == COORDINATOR);
    problems.retain(|problem| problem.code != COORDINATOR);
    problems.extend(of_coordinators);
    Ok(Problems::new(problems))
}

/// So many of something, in words.
fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}
