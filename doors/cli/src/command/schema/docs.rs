use std::fs;
use std::path::PathBuf;

use clap::Args;
use keyward::schema::docs_page;

use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Write a schema as a page for people
///
/// Markdown: stores, keys, and for each space its values, indexes, lifetime, owner and queries, with
/// what answers them. The same schema always gives the same page.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward schema docs
  keyward schema docs app.toml -o docs/keys.md"#)]
pub struct Arguments {
    /// The schema file
    file: Option<PathBuf>,
    /// Write the page to this file instead of printing it
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let (_, read) = super::chosen(arguments.file, target).await?;
    let page = docs_page(&read?.0);
    let Some(to) = arguments.output else {
        return match output.json() {
            true => output.write_json(&serde_json::json!({ "page": page })),
            false => output.write_all(page.as_bytes()),
        };
    };
    fs::write(&to, page)
        .map_err(|error| Failure::file(format_args!("cannot write {}", to.display()), &error))?;
    match output.json() {
        true => output.write_json(&serde_json::json!({ "file": to })),
        false => writeln!(output, "wrote {}", to.display()),
    }
}
