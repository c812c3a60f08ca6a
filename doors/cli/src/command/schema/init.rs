use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use keyward::schema::EXAMPLE;

use crate::config::SCHEMA;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Write a schema file to begin with
///
/// An example with comments: users with unique addresses, notes with history, sessions that expire,
/// shared templates, places on a map, posts that others find, what agents keep. A file that is there is never
/// overwritten.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward schema init
  keyward schema init schemas/app.toml"#)]
pub struct Arguments {
    /// Where to write it
    #[arg(default_value = SCHEMA)]
    file: PathBuf,
}

pub fn run(arguments: Arguments, output: &mut Output) -> Result {
    let path = arguments.file;
    let written = File::create_new(&path).and_then(|mut file| file.write_all(EXAMPLE.as_bytes()));
    match written {
        Ok(()) if output.json() => output.write_json(&serde_json::json!({ "file": path })),
        Ok(()) => {
            writeln!(output, "wrote {}; change it, then run keyward schema check", path.display())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let message = format!("{} is there already", path.display());
            Err(Failure::new(Exit::Place, "file", message)
                .hint("Nothing was written. Name another file."))
        }
        Err(error) => Err(Failure::file(format_args!("cannot write {}", path.display()), &error)),
    }
}
