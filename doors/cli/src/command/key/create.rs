use clap::Args;
use jiff::Timestamp;
use keyward::{Clock, SystemClock};
use keyward_server::{ApiKey, NewKey, Scope};
use serde::Serialize;

use super::ring::Ring;
use crate::failure::Result;
use crate::output::{Output, note};
use crate::ttl;

/// Make an API key, which is shown once
///
/// The key is written to standard output, alone, for a program or a file to take; only a hash of it
/// is kept. With --json, an object with the key and everything that is known of it.
///
/// A key of a user reaches what is that user's, and what is shared. Without --user it is an operator's,
/// held back by its scopes alone.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward key create laptop --scope 'admin:*'
  keyward key create ada-phone --user ada --role editor --expires 90d
  keyward key create importer --scope write:space/notes --scope read:store/main
  keyward key create ci --expires 2027-01-01T00:00:00Z --json | jq -r .secret"#)]
pub struct Arguments {
    /// What people call it
    name: String,
    /// Whose it is
    #[arg(long)]
    user: Option<String>,
    /// The agent that acts for the user
    #[arg(long, requires = "user")]
    agent: Option<String>,
    /// A role that the user has; may be repeated
    #[arg(long = "role", value_name = "ROLE", requires = "user")]
    roles: Vec<String>,
    /// What it allows: read, write or admin, a colon, and *, store/NAME, space/NAME,
    /// namespace/NAME or registry/NAME; may be repeated [default: write:*]
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<Scope>,
    /// When it ends: after a time such as 12h or 90d, or at a moment such as 2027-01-01T00:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = end)]
    expires: Option<Timestamp>,
}

/// A moment, or a time from now on.
fn end(text: &str) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    let after = ttl::parse(text).map_err(|why| format!("{why}, or a moment as RFC 3339"))?;
    SystemClock.now().checked_add(after).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct Created<'k> {
    secret: &'k str,
    #[serde(flatten)]
    key: &'k ApiKey,
}

pub async fn run(arguments: Arguments, keys: &Ring, output: &mut Output) -> Result {
    let Arguments { name, user, agent, roles, scopes, expires } = arguments;
    let scopes = Some(scopes).filter(|scopes| !scopes.is_empty());
    let new = NewKey { name, user, agent, roles, scopes, expires };
    let (key, secret) = keys.create(new).await?;
    if output.json() {
        output.write_json(&Created { secret: &secret, key: &key })?;
    } else {
        note(format_args!("made the key {}; it is shown once, keep it well:", key.id));
        writeln!(output, "{secret}")?;
    }
    output.flush()
}
