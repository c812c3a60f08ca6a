//! The clients, and what their configuration looks like.

use std::env;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use keyward::Code;
use serde_json::{Map, Value, json};

use super::way::Way;
use crate::failure::{Failure, Result};

/// A program that uses MCP servers, and whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// claude_desktop_config.json
    ClaudeDesktop,
    /// ~/.claude.json; with --project ./.mcp.json
    ClaudeCode,
    /// ~/.cursor/mcp.json; with --project ./.cursor/mcp.json
    Cursor,
    /// mcp.json of the user; with --project ./.vscode/mcp.json
    Vscode,
    /// ~/.codeium/windsurf/mcp_config.json
    Windsurf,
    /// ~/.config/zed/settings.json; with --project ./.zed/settings.json
    Zed,
    /// ~/.gemini/settings.json; with --project ./.gemini/settings.json
    GeminiCli,
}

/// A server as a client's configuration has it: members in the order in which they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry(pub Vec<(&'static str, Value)>);

impl Entry {
    /// As JSON.
    pub fn to_value(&self) -> Value {
        let members = self.0.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        Value::from(Map::from_iter(members))
    }
}

impl Client {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::GeminiCli => "Gemini CLI",
        }
    }

    /// Where its configuration is for all of a user's projects.
    pub fn file(self) -> Result<PathBuf> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = set("HOME").ok_or_else(|| {
            Failure::invalid("HOME is not set, and the configuration lies below it")
                .hint("Name the file: --file FILE.")
        })?;
        let config = set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        Ok(self.file_below(&home, &config, cfg!(target_os = "macos")))
    }

    fn file_below(self, home: &Path, config: &Path, macos: bool) -> PathBuf {
        let of_applications = match macos {
            true => home.join("Library/Application Support"),
            false => config.to_owned(),
        };
        match self {
            Self::ClaudeDesktop => of_applications.join("Claude/claude_desktop_config.json"),
            Self::ClaudeCode => home.join(".claude.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Vscode => of_applications.join("Code/User/mcp.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Self::Zed if macos => home.join(".config/zed/settings.json"),
            Self::Zed => config.join("zed/settings.json"),
            Self::GeminiCli => home.join(".gemini/settings.json"),
        }
    }

    /// Where its configuration is for the project in this directory.
    pub fn project_file(self) -> Result<PathBuf> {
        let file = match self {
            Self::ClaudeCode => ".mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Zed => ".zed/settings.json",
            Self::GeminiCli => ".gemini/settings.json",
            Self::ClaudeDesktop | Self::Windsurf => {
                let message = format!("{} has no configuration of a project", self.name());
                return Err(Failure::new(Code::Unsupported, message).hint("Leave out --project."));
            }
        };
        Ok(PathBuf::from(file))
    }

    /// Under which name servers stand.
    pub fn table(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::Zed => "context_servers",
            _ => "mcpServers",
        }
    }

    /// Whether comments and commas at the end may stand in its configuration.
    pub fn allows_comments(self) -> bool {
        matches!(self, Self::Vscode | Self::Zed | Self::GeminiCli)
    }

    /// A server as this client's configuration has it.
    pub fn entry(self, way: &Way) -> Result<Entry> {
        let mut members = match self {
            Self::ClaudeCode | Self::Vscode => vec![("type", json!(way.kind()))],
            _ => Vec::new(),
        };
        match way {
            Way::Starting { command, arguments, variables } => {
                members.extend([("command", json!(command)), ("args", json!(arguments))]);
                if !variables.is_empty() {
                    members.push(("env", json!(variables)));
                }
            }
            Way::Server { url, key_variable } => {
                let field = match self {
                    Self::ClaudeDesktop => return Err(self.no_servers()),
                    Self::Windsurf => "serverUrl",
                    Self::GeminiCli => "httpUrl",
                    Self::ClaudeCode | Self::Cursor | Self::Vscode | Self::Zed => "url",
                };
                members.push((field, json!(url)));
                if let Some(variable) = key_variable {
                    let key = self.variable(variable)?;
                    members.push(("headers", json!({ "Authorization": format!("Bearer {key}") })));
                }
            }
        }
        Ok(Entry(members))
    }

    /// What the client puts the value of a variable in the place of.
    fn variable(self, name: &str) -> Result<String> {
        match self {
            Self::ClaudeCode | Self::GeminiCli => Ok(format!("${{{name}}}")),
            Self::Cursor | Self::Windsurf => Ok(format!("${{env:{name}}}")),
            Self::ClaudeDesktop | Self::Vscode | Self::Zed => {
                let message = format!("{} takes no API key from a variable", self.name());
                Err(Failure::new(Code::Unsupported, message)
                    .hint("Leave out --key-variable, and give the client the key in its own way."))
            }
        }
    }

    fn no_servers(self) -> Failure {
        let message = format!("the configuration of {} takes no URLs", self.name());
        Failure::new(Code::Unsupported, message).hint(
            "Leave out --url to have it start keyward mcp, or add a connector in its settings.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_file() {
        let (home, config) = (Path::new("/home/ada"), Path::new("/home/ada/.config"));
        let clients = Client::value_variants();
        for macos in [false, true] {
            let mut files: Vec<_> =
                clients.iter().map(|client| client.file_below(home, config, macos)).collect();
            files.sort();
            files.dedup();
            assert_eq!(files.len(), clients.len());
        }
        assert_eq!(
            Client::ClaudeDesktop.file_below(home, config, false),
            Path::new("/home/ada/.config/Claude/claude_desktop_config.json")
        );
        assert_eq!(
            Client::Vscode.file_below(home, config, true),
            Path::new("/home/ada/Library/Application Support/Code/User/mcp.json")
        );
    }

    #[test]
    fn a_key_is_named_and_never_written() {
        let way = Way::Server {
            url: "https://h/mcp".to_owned(),
            key_variable: Some("KEYWARD_KEY".to_owned()),
        };
        let entry = |client: Client| client.entry(&way).map(|entry| entry.to_value().to_string());
        assert_eq!(
            entry(Client::Cursor).unwrap(),
            r#"{"headers":{"Authorization":"Bearer ${env:KEYWARD_KEY}"},"url":"https://h/mcp"}"#
        );
        assert!(entry(Client::ClaudeCode).unwrap().contains("Bearer ${KEYWARD_KEY}"));
        for client in [Client::ClaudeDesktop, Client::Vscode, Client::Zed] {
            assert!(entry(client).is_err());
        }
    }
}
