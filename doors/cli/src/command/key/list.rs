use clap::Args;
use keyward_server::ApiKey;

use super::plain;
use super::ring::Ring;
use crate::failure::Result;
use crate::output::Output;

/// List API keys: whose they are, what they allow, when they were last used
///
/// When a program reads it, or with --json, one JSON object for each key. Their secrets are not kept,
/// and so cannot be shown.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward key list
  keyward key list --json | jq -r 'select(.revoked == null) | .id'"#)]
pub struct Arguments {}

const KEYS_PER_PAGE: usize = 100;

pub async fn run(_: Arguments, keys: &Ring, output: &mut Output) -> Result {
    let mut after: Option<String> = None;
    loop {
        let (page, more) = keys.list(after.as_deref(), KEYS_PER_PAGE).await?;
        for key in &page {
            if output.json_lines() {
                output.write_json(key)?;
            } else {
                tell(key, output)?;
            }
        }
        after = page.last().map(|key| key.id.clone());
        if !more || after.is_none() {
            return output.flush();
        }
    }
}

fn tell(key: &ApiKey, output: &mut Output) -> Result {
    let scopes: Vec<_> = key.scopes.iter().map(ToString::to_string).collect();
    write!(output, "{}  {}  {}", key.id, plain(&key.name), scopes.join(" "))?;
    if let Some(user) = &key.user {
        write!(output, "  user {}", plain(user))?;
    }
    if let Some(agent) = &key.agent {
        write!(output, " through {}", plain(agent))?;
    }
    if !key.roles.is_empty() {
        write!(output, " as {}", plain(&key.roles.join(", ")))?;
    }
    let moments = [("ends", key.expires), ("last used", key.last_used), ("revoked", key.revoked)];
    for (what, moment) in moments {
        if let Some(moment) = moment {
            write!(output, "  {what} {moment:.0}")?;
        }
    }
    writeln!(output)
}
