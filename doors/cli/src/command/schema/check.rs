use std::path::PathBuf;

use clap::Args;
use keyward::schema::{Problem, Problems};
use serde::Serialize;

use super::counted;
use crate::args::Target;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Tell everything that is wrong with a schema file
///
/// Each problem with its line and what to do about it. Keys, values and lifetimes are also held
/// against the limits of the engines that the stores' urls name (-s names another); no store is opened
/// or made for that. Exits with 2 if the schema cannot be used;
/// warnings alone do not count.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward schema check
  keyward schema check app.toml
  keyward schema check app.toml -s postgres://db/app
  keyward schema check --json | jq '.problems[].message'"#)]
pub struct Arguments {
    /// The schema file
    file: Option<PathBuf>,
}

#[derive(Serialize)]
struct Checked<'c> {
    file: String,
    usable: bool,
    problems: Vec<&'c Problem>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let (path, read) = super::chosen(arguments.file, target).await?;
    let (schema, problems) = match read {
        Ok((schema, warnings)) => {
            let misfits = super::misfits(&schema, &path, target)?;
            let usable = !misfits.has_errors();
            let problems = Problems::new(warnings.into_iter().chain(misfits).collect());
            (usable.then_some(schema), problems)
        }
        Err(problems) => (None, problems),
    };
    if output.json() {
        let file = path.display().to_string();
        let problems = problems.iter().collect();
        output.write_json(&Checked { file, usable: schema.is_some(), problems })?;
    } else if !problems.is_empty() {
        writeln!(output, "{problems}")?;
    }
    let Some(schema) = schema else { return Err(Failure::told(Exit::Invalid)) };
    if output.json() {
        return Ok(());
    }
    let indexes = schema.spaces.iter().map(|space| space.indexes.len()).sum();
    writeln!(
        output,
        "{} is good: {}, {}, {}, {}",
        path.display(),
        counted(schema.stores.len(), "store"),
        counted(schema.spaces.len(), "space"),
        match indexes {
            1 => "1 index".to_owned(),
            indexes => format!("{indexes} indexes"),
        },
        counted(schema.locks.len(), "lock tree"),
    )
}
