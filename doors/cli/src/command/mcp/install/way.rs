//! How a client reaches Keyward.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use keyward::StoreUrl;

use super::super::Whom;
use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::store_choice::{Choice, Named, Source};

/// How a client reaches Keyward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// It starts keyward mcp, and speaks over standard input and output.
    Starting { command: String, arguments: Vec<String>, variables: BTreeMap<&'static str, String> },
    /// It speaks to a server.
    Server { url: String, key_variable: Option<String> },
}

impl Way {
    /// What configurations call it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Starting { .. } => "stdio",
            Self::Server { .. } => "http",
        }
    }

    /// By speaking to a server.
    pub fn to_server(url: &str, key_variable: Option<&str>, target: &Target) -> Result<Self> {
        if target.store_is_asked_for() {
            return Err(Failure::invalid(
                "--url and -s: which stores there are is the server's affair",
            )
            .hint("Leave out one of the two."));
        }
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
        if host.is_empty() || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(Failure::invalid("the URL of a server begins with http:// or https://")
                .hint("Write for example --url http://127.0.0.1:7480/mcp."));
        }
        if host.contains('@') {
            return Err(Failure::invalid("the URL has a password in it, which is not written")
                .hint("Leave it out; --key-variable names a variable with an API key."));
        }
        let key_variable = key_variable.map(str::to_owned);
        Ok(Self::Server { url: url.to_owned(), key_variable })
    }

    /// By starting keyward mcp on what other commands would use here, for somebody.
    pub fn by_starting(target: &Target, whom: &Whom) -> Result<Self> {
        target.refuse_server(
            "starting keyward mcp",
            "Have the client speak to the server itself: --url URL, with /mcp after the server's.",
        )?;
        let here = env::current_dir()
            .map_err(|error| Failure::file("cannot tell which directory this is", &error))?;
        let program = env::current_exe()
            .map_err(|error| Failure::file("cannot tell where this program is", &error))?;
        let mut arguments = vec!["mcp".to_owned()];
        arguments.extend(whom.arguments());
        let mut variables = BTreeMap::new();
        let choice = Choice::of(target)?;
        if let Some(schema) = &choice.schema {
            arguments.extend(["--schema".to_owned(), whole(&here, schema)?]);
        }
        let is_one = choice.data.schema().stores.len() == 1;
        let by_name = target.named_store().filter(Named::is_name);
        match by_name.as_ref().map(|named| (&named.source, named.text.clone())) {
            Some((Source::Flag, name)) => arguments.extend(["--store".to_owned(), name]),
            Some((_, name)) => drop(variables.insert("KEYWARD_STORE", name)),
            None => {}
        }
        match &choice.source {
            // The schema says it there as well.
            Source::Schema(_) => {}
            Source::Config(config) => {
                arguments.extend(["--config".to_owned(), whole(&here, config)?]);
            }
            _ if by_name.is_some() => {
                let message =
                    "a store that is named needs a place that does not depend on this directory";
                return Err(Failure::invalid(message).hint("Give it a url in the schema file."));
            }
            Source::Flag | Source::Variable | Source::Default => {
                let url = keyward::url_beside(&here, &choice.url()?)?;
                refuse_password(&url)?;
                // Of a schema with several stores, -s would mean one of them only.
                match is_one {
                    true => arguments.extend(["--store".to_owned(), url]),
                    false => drop(variables.insert("KEYWARD_STORE", url)),
                }
            }
        }
        // What would be refused later is refused now.
        if choice.schema.is_some() {
            choice.into_data()?;
        }
        Ok(Self::Starting { command: text(&program)?, arguments, variables })
    }
}

/// A path that means the same from everywhere.
fn whole(here: &Path, path: &Path) -> Result<String> {
    text(&here.join(path).components().collect::<PathBuf>())
}

fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::invalid(format!("{} cannot stand in JSON: it is not UTF-8", path.display()))
    })
}

/// A configuration is read by others, so no password is written into it.
fn refuse_password(url: &str) -> Result {
    let shown = url.parse::<StoreUrl>()?.to_string();
    if shown.contains('…') && !url.contains('…') {
        return Err(Failure::invalid("the URL of the store has a password, which is not written")
            .hint(
                "Write store = \"URL\" into a file that only you can read, and add --config FILE.",
            ));
    }
    Ok(())
}
