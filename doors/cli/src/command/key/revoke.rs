use clap::Args;
use keyward::Code;

use super::plain;
use super::ring::Ring;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Revoke an API key: from now on no server takes it
///
/// It stays in the list, and cannot be brought back. To revoke it again changes nothing.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward key revoke 4f0a1b2c"#)]
pub struct Arguments {
    /// The id of the key, as it is listed: what stands between kw_ and the next _
    id: String,
}

pub async fn run(arguments: Arguments, keys: &Ring, output: &mut Output) -> Result {
    let Some(key) = keys.revoke(&arguments.id).await? else {
        return Err(Failure::new(Code::NotFound, "no API key has this id")
            .hint("keyward key list shows them."));
    };
    if output.json() {
        output.write_json(&key)?;
    } else {
        writeln!(output, "revoked {} ({})", key.id, plain(&key.name))?;
    }
    output.flush()
}
