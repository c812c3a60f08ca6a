//! The start banner of a server: its addresses, its start token and a first request to try.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use keyward::{Code, Data};
use keyward_server::{Config, Server};
use serde::Serialize;

use super::in_force::place;
use crate::failure::{Failure, Result};
use crate::output::Output;

#[derive(Serialize)]
struct Started<'s> {
    address: SocketAddr,
    url: String,
    /// Whether there is no API key yet.
    local: bool,
    /// The start token, unless there is a key or the token went to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_token: Option<&'s str>,
}

/// Says where the server is found, and who may use it. Writes the start token to its file, if it has one.
pub fn tell(
    server: &Server,
    config: &Config,
    token_file: Option<&Path>,
    data: &Data,
    output: &mut Output,
) -> Result {
    let token = server.start_token();
    if let (Some(token), Some(file)) = (token, token_file) {
        write_secret(file, token).map_err(|error| {
            let message =
                format!("the start token cannot be written to {}: {error}", file.display());
            Failure::new(Code::NotStarted, message)
                .hint("Name a file in a folder that you may write to.")
        })?;
    }
    let (url, local) = (server.url(), server.is_local());
    if output.json() {
        let start_token = token.filter(|_| token_file.is_none());
        output.write_json(&Started { address: server.address(), url, local, start_token })?;
        return output.flush();
    }
    let store = data.schema().stores.first().map_or("main", |store| store.name.as_str());
    let credential = match local && !config.start_token {
        true => "",
        false => "-H \"Authorization: Bearer $KEYWARD_KEY\" ",
    };
    writeln!(
        output,
        "Keyward serves {}.
{}
  page      {url}/
  API docs  {url}/docs/
  API       {url}/v1/stores
  MCP       {url}/mcp

Try:
  curl {credential}-X PUT {url}/v1/stores/{store}/entries/hello:world \\
       -H 'content-type: application/json' -d '{{\"from\":\"me\"}}'
  curl {credential}{url}/v1/stores/{store}/entries/hello:world

Ctrl-C stops it.",
        stores(data),
        who(token, config.start_token, token_file),
    )?;
    output.flush()
}

/// Who may use the server.
fn who(token: Option<&str>, required: bool, token_file: Option<&Path>) -> String {
    let Some(token) = token else {
        return "Every request needs an API key or a token.\n".to_owned();
    };
    let token = match token_file {
        Some(file) => format!("in {}", file.display()),
        None => token.to_owned(),
    };
    match required {
        true => format!(
            "There is no API key yet: whoever has the start token may do everything. Send it as you \
             would send a key.\n\n  start token  {token}\n"
        ),
        false => format!(
            "There is no API key yet: every account on this machine may do everything here.
Make the first key with keyward key create NAME --scope 'admin:*', or over HTTP with the start token:

  start token  {token}\n"
        ),
    }
}

/// Writes a secret to a new file that its owner alone may read. One of an earlier start is replaced.
fn write_secret(file: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Not what somebody else puts there meanwhile, nor what a link points at.
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(new, "{text}")
}

fn stores(data: &Data) -> String {
    let stores = data.schema().stores.iter();
    let named = stores.map(|store| format!("{} ({})", store.name, place(data, &store.name)));
    named.collect::<Vec<_>>().join(", ")
}
