use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::members::Members;
use crate::args::Target;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, note};

/// Have a client start keyward mcp: writes its configuration
///
/// What else is in the file stays. The store and the schema are those that other commands would use
/// here, as whole paths.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward mcp install claude-code -s embedded:./data
  keyward mcp install cursor --schema keyward.schema.toml
  keyward mcp install claude-desktop --name notes -s embedded:./notes
  keyward mcp install vscode --print -s embedded:./data"#)]
pub struct Arguments {
    /// The client
    #[arg(value_enum, value_name = "CLIENT")]
    client: Client,
    /// What the client calls it
    #[arg(long, default_value = "keyward")]
    name: String,
    /// The configuration to write, if it is not where the client usually has it
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Show what would be written, and write nothing
    #[arg(long)]
    print: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Client {
    /// ./.mcp.json
    ClaudeCode,
    /// claude_desktop_config.json of the user
    ClaudeDesktop,
    /// ./.cursor/mcp.json
    Cursor,
    /// ./.vscode/mcp.json
    Vscode,
}

impl Client {
    /// Where its configuration is.
    fn file(self) -> Result<PathBuf> {
        match self {
            Self::ClaudeCode => Ok(PathBuf::from(".mcp.json")),
            Self::Cursor => Ok(PathBuf::from(".cursor/mcp.json")),
            Self::Vscode => Ok(PathBuf::from(".vscode/mcp.json")),
            Self::ClaudeDesktop => {
                let home = env::var_os("HOME").map(PathBuf::from).ok_or_else(|| {
                    Failure::invalid("HOME is not set, and the configuration lies below it")
                        .hint("Name the file: --file FILE.")
                })?;
                let below = match cfg!(target_os = "macos") {
                    true => "Library/Application Support/Claude",
                    false => ".config/Claude",
                };
                Ok(home.join(below).join("claude_desktop_config.json"))
            }
        }
    }

    /// Under which name servers stand.
    fn table(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            _ => "mcpServers",
        }
    }
}

pub fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    target.refuse_server(
        "having a client start keyward mcp",
        "Give the client the server's URL with /mcp after it, and an API key as bearer token.",
    )?;
    let file = match arguments.file {
        Some(file) => file,
        None => arguments.client.file()?,
    };
    let before = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::file(file.display(), &error)),
    };
    let entry = entry(target)?;
    let text = written(&before, arguments.client.table(), &arguments.name, &entry)
        .map_err(|reason| unreadable(&file, &reason))?;
    if arguments.print {
        write!(output, "{text}")?;
        return output.flush();
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|error| Failure::file(folder.display(), &error))?;
    }
    fs::write(&file, text).map_err(|error| Failure::file(file.display(), &error))?;
    note(format_args!("{} has {} now; start the client anew", file.display(), arguments.name));
    Ok(())
}

/// How a client starts it.
fn entry(target: &Target) -> Result<Value> {
    let program = env::current_exe().map_err(|error| Failure::file("this program", &error))?;
    let here = env::current_dir().map_err(|error| Failure::file("this directory", &error))?;
    let mut given = vec!["mcp".to_owned()];
    if let Some(schema) = target.schema_file_if_any()? {
        given.extend(["--schema".to_owned(), here.join(schema).to_string_lossy().into_owned()]);
    }
    if let Some(url) = target.url_if_any()? {
        given.extend(["--store".to_owned(), keyward::url_beside(&here, &url)?]);
    }
    if given.len() == 1 {
        return Err(Failure::new(Exit::Invalid, "no-store", "no store and no schema was named")
            .hint("Name one, as in keyward mcp install claude-code -s embedded:./data."));
    }
    Ok(json!({ "command": program.to_string_lossy(), "args": given }))
}

/// A configuration with one more server in it, or with another in its place.
fn written(before: &str, table: &str, name: &str, entry: &Value) -> Result<String, String> {
    let mut all = Members::parse(before)?;
    let mut servers = Members::parse(all.get(table).unwrap_or_default())?;
    servers.set(name, entry.to_string());
    all.set(table, servers.text("  "));
    Ok(format!("{}\n", all.text("")))
}

fn unreadable(file: &Path, reason: &str) -> Failure {
    Failure::invalid(format!("{} cannot be read: {reason}", file.display()))
        .hint("Mend it, or name another with --file; nothing was written.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_else_is_in_the_file_stays_as_it_is() {
        let before = r#"{"z": {"b": 1.10, "a": 2}, "mcpServers": {"other": {"command": "x"}}}"#;
        let once = written(before, "mcpServers", "keyward", &json!({"command": "k"})).unwrap();
        assert_eq!(
            once,
            "{\n  \"z\": {\"b\": 1.10, \"a\": 2},\n  \"mcpServers\": {\n    \"other\": {\"command\": \
             \"x\"},\n    \"keyward\": {\"command\":\"k\"}\n  }\n}\n"
        );
        let again = written(&once, "mcpServers", "keyward", &json!({"command": "k"})).unwrap();
        assert_eq!(once, again);
        let moved = written(&once, "mcpServers", "keyward", &json!({"command": "l"})).unwrap();
        assert!(moved.contains(r#""l""#) && !moved.contains(r#""k""#));
    }

    #[test]
    fn an_empty_file_is_begun_and_a_broken_one_is_refused() {
        let begun = written("", "servers", "k", &json!({})).unwrap();
        assert_eq!(begun, "{\n  \"servers\": {\n    \"k\": {}\n  }\n}\n");
        assert!(written("[1]", "servers", "k", &json!({})).is_err());
        assert!(written("{ // a comment\n}", "servers", "k", &json!({})).is_err());
    }
}
