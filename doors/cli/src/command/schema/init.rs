use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use keyward::schema::EXAMPLE;
use keyward::{Code, StoreUrl};

use crate::args::Target;
use crate::config::SCHEMA;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::store_choice;

/// Write a schema file to begin with
///
/// An example with comments: users with unique addresses, notes with history, sessions that expire,
/// shared templates, places on a map, posts that others find, what agents keep. All of it is in one store, the
/// one that other commands use here. A file that is there is never overwritten.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward schema init
  keyward schema init schemas/app.toml"#)]
pub struct Arguments {
    /// Where to write it
    #[arg(default_value = SCHEMA)]
    file: PathBuf,
}

pub fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let path = arguments.file;
    let url = place(&path, target)?;
    let text = match &url {
        Some(url) => EXAMPLE.replace(EXAMPLE_URL, &toml::Value::from(url.as_str()).to_string()),
        None => EXAMPLE.replace(&format!("url = {EXAMPLE_URL}\n"), ""),
    };
    let written = File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) if output.json() => {
            output.write_json(&serde_json::json!({ "file": path, "store": url }))
        }
        Ok(()) => {
            let (file, named) = (path.display(), url.map(|url| format!(" for the store {url}")));
            let named = named.unwrap_or_default();
            writeln!(output, "wrote {file}{named}; change it, then run keyward schema check")
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let message = format!("{} is there already", path.display());
            Err(Failure::new(Code::File, message).hint("Nothing was written. Name another file."))
        }
        Err(error) => Err(Failure::file(format_args!("cannot write {}", path.display()), &error)),
    }
}

/// The place of the example's store, as it stands in the text.
const EXAMPLE_URL: &str = "\"embedded:./keyward-data\"";

/// The place of the store that other commands use here, as the schema file writes it. None for a place
/// with a password, which does not belong into the file, and for the stores of a server.
fn place(file: &Path, target: &Target) -> Result<Option<String>> {
    if target.server()?.is_some() {
        return Ok(None);
    }
    let named = match target.named_store() {
        Some(named) if named.is_name() => {
            let message =
                format!("a new schema file needs the URL of its store, not {:?}", named.text);
            return Err(Failure::invalid(message).hint("Write for example -s embedded:./data."));
        }
        Some(named) => named,
        None => store_choice::fallback(target)?,
    };
    let parsed: StoreUrl = named.text.parse()?;
    if parsed.to_string().contains('…') {
        return Ok(None);
    }
    // What is relative in a schema file is relative to it.
    let folder = file.parent().unwrap_or(Path::new(""));
    match folder == Path::new("") || folder == Path::new(".") {
        true => Ok(Some(named.text)),
        false => {
            let here = env::current_dir()
                .map_err(|error| Failure::file("cannot tell which directory this is", &error))?;
            Ok(Some(keyward::url_beside(&here, &named.text)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_has_the_place_that_is_written_over_exactly_once() {
        assert_eq!(EXAMPLE.matches(&format!("url = {EXAMPLE_URL}\n")).count(), 1);
        assert_eq!(EXAMPLE.matches(EXAMPLE_URL).count(), 1);
    }
}
