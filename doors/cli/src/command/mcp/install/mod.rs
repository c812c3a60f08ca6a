//! `keyward mcp install`: a server in the configuration of a client.

mod client;
mod configuration;
mod file;
mod way;

use std::path::{Path, PathBuf};

use clap::Args;
use keyward::Code;
use serde::Serialize;
use serde_json::{Map, Value};

use self::client::{Client, Entry};
use self::configuration::Added;
use self::file::File;
use self::way::Way;
use super::Whom;
use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::{Output, note};
use crate::pretty::pretty;

/// Have a client use Keyward: writes the client's configuration
///
/// The client then starts keyward mcp, on the store and the schema that other commands would use here, as
/// whole paths, for the user and with the roles that are given; or, with --url, it speaks to a server that runs. Everything else in the file stays as it
/// is, comments too where the client allows them; the file as it was is kept beside it as FILE.bak. A
/// file that is not JSON is refused. No password and no API key is written: --key-variable names a
/// variable that the client takes the key from.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward mcp install claude-desktop -s embedded:./data
  keyward mcp install claude-code --schema keyward.schema.toml --user ada --project
  keyward mcp install zed --name notes -s embedded:./notes --print
  keyward mcp install cursor --url http://127.0.0.1:7480/mcp
  keyward mcp install windsurf --url https://data.example.org/mcp --key-variable KEYWARD_KEY"#)]
pub struct Arguments {
    /// The client
    #[arg(value_enum, value_name = "CLIENT")]
    client: Client,
    /// What the client calls it
    #[arg(long, default_value = "keyward", value_parser = name)]
    name: String,
    /// Have the client speak to a server, at its URL with /mcp after it, rather than start keyward mcp
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// With --url: the variable that the client takes the API key from
    #[arg(long, value_name = "VARIABLE", requires = "url", value_parser = variable)]
    key_variable: Option<String>,
    /// For this project only: the client's file in this directory
    #[arg(long, conflicts_with = "file")]
    project: bool,
    /// The file to write, if it is not where the client usually has it
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Put it in the place of a server of the same name
    #[arg(long)]
    replace: bool,
    /// Show what would be added, and write nothing
    #[arg(long)]
    print: bool,
}

/// A name that every client takes.
fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !text.is_empty() && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("a name has letters, digits, - and _ only".to_owned()),
    }
}

fn variable(text: &str) -> Result<String, String> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    match begins && text.chars().all(in_name) {
        true => Ok(text.to_owned()),
        false => Err("name a variable, such as KEYWARD_KEY, not the key itself".to_owned()),
    }
}

#[derive(Serialize)]
struct Told<'t> {
    client: &'t str,
    file: &'t Path,
    name: &'t str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
}

pub fn run(arguments: Arguments, whom: &Whom, target: &Target, output: &mut Output) -> Result {
    let Arguments { client, name, .. } = &arguments;
    let way = match &arguments.url {
        Some(_) if whom.is_given() => return Err(known_by_key()),
        Some(url) => Way::to_server(url, arguments.key_variable.as_deref(), target)?,
        None => Way::by_starting(target, whom)?,
    };
    let entry = client.entry(&way)?;
    let place = match (&arguments.file, arguments.project) {
        (Some(file), _) => file.clone(),
        (None, true) => client.project_file()?,
        (None, false) => client.file()?,
    };
    let file = File::read(&place)?;
    let table = client.table();
    let added = configuration::add(&file.text, table, name, &entry, client.allows_comments());
    let added = added.map_err(|reason| refused(&place, &reason))?;
    if arguments.print {
        return print(&place, table, name, &entry, output);
    }
    let (outcome, text) = match added {
        Added::New(text) => ("added", text),
        Added::Instead(text) if arguments.replace => ("replaced", text),
        Added::Instead(_) => return Err(taken(&place, name)),
        Added::There => return tell(&arguments, &place, "unchanged", None, output),
    };
    let backup = file.replace(&text)?;
    tell(&arguments, &place, outcome, backup, output)
}

/// Shows what is added. What else is in the file may be secret.
fn print(file: &Path, table: &str, name: &str, entry: &Entry, output: &mut Output) -> Result {
    let inner = Map::from_iter([(name.to_owned(), entry.to_value())]);
    let shown = Value::from(Map::from_iter([(table.to_owned(), Value::from(inner))]));
    if output.json() {
        return output.write_json(&serde_json::json!({ "file": file, "adds": shown }));
    }
    output.write_all(&pretty(shown.to_string().as_bytes()))?;
    writeln!(output)?;
    output.flush()?;
    note(format_args!("this would be added to {}", file.display()));
    Ok(())
}

fn tell(
    arguments: &Arguments,
    file: &Path,
    outcome: &'static str,
    backup: Option<PathBuf>,
    output: &mut Output,
) -> Result {
    let (client, name) = (arguments.client.name(), arguments.name.as_str());
    if output.json() {
        return output.write_json(&Told { client, file, name, outcome, backup });
    }
    let shown = file.display();
    match (outcome, backup) {
        ("unchanged", _) => writeln!(output, "{shown} has {name} already"),
        (outcome, None) => writeln!(output, "{outcome} {name} in {shown}; start {client} anew"),
        (outcome, Some(backup)) => {
            let backup = backup.display();
            writeln!(
                output,
                "{outcome} {name} in {shown} (as it was: {backup}); start {client} anew"
            )
        }
    }
}

fn known_by_key() -> Failure {
    Failure::invalid("--url with --user or --role: a server knows the user by the API key").hint(
        "Leave out --user and --role, or leave out --url to have the client start keyward mcp.",
    )
}

fn refused(file: &Path, reason: &str) -> Failure {
    Failure::invalid(format!("{} {reason}", file.display()))
        .hint("Nothing was written. Mend the file, or name another with --file.")
}

fn taken(file: &Path, name: &str) -> Failure {
    let message = format!("{} has another server called {name}", file.display());
    Failure::new(Code::Exists, message)
        .hint("Nothing was written. Add --replace to put this one in its place, or --name NAME.")
}
