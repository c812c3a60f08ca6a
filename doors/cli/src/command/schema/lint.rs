use std::path::PathBuf;

use clap::Args;
use keyward::schema::{Weight, lint};

use super::counted;
use crate::args::Target;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Look for the common mistakes of storage schemas
///
/// Keys without a namespace, owners that stand only in the value, keys built in several ways, queries
/// without an index, indexes kept by hand: each with the reason and the remedy. Exits with 2 if there
/// is a mistake; hints alone do not count.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward schema lint
  keyward schema lint app.toml --json | jq -r .code"#)]
pub struct Arguments {
    /// The schema file
    file: Option<PathBuf>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let (path, read) = super::chosen(arguments.file, target).await?;
    let (schema, _) = read?;
    let misfits = super::misfits(&schema, &path, target)?.errors();
    if !misfits.is_empty() {
        return Err(misfits.into());
    }
    let findings = lint(&schema);
    for finding in &findings {
        match output.json() {
            true => output.write_json(finding)?,
            false => write!(output, "{finding}\n\n")?,
        }
    }
    let mistakes = findings.iter().filter(|finding| finding.weight == Weight::Mistake).count();
    if !output.json() {
        let path = path.display();
        match (mistakes, findings.len() - mistakes) {
            (0, 0) => writeln!(output, "{path} has none of the common mistakes")?,
            (mistakes, hints) => {
                let (mistakes, hints) = (counted(mistakes, "mistake"), counted(hints, "hint"));
                writeln!(output, "{path}: {mistakes}, {hints}")?;
            }
        }
    }
    if mistakes > 0 { Err(Failure::told(Exit::Invalid)) } else { Ok(()) }
}
