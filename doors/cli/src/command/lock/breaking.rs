use clap::Args;
use keyward::locks::{LockPath, Target as Broken};

use super::claim::named;
use super::opened;
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Take a lock away from whoever holds it
///
/// For locks that nobody will release: their holder is told, and whatever it still writes under the
/// lock is refused; on engines that commit one key at a time, only once it was told or the next holder
/// has updated the same key. What it does outside the store is not refused: make sure that it is
/// stopped. Who broke which lock and why is kept in the root's catalog.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward lock break page:7 policies:123 --reason "the importer hangs"
  keyward lock break page:7 --token 42 --reason "stuck since Monday""#)]
pub struct Arguments {
    /// The key that the lock is below
    root: String,
    /// What is held, exactly as it is listed; the whole root if left out
    #[arg(conflicts_with = "token")]
    path: Option<String>,
    /// The lock with this token
    #[arg(long)]
    token: Option<u64>,
    /// Why, for the holder and the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let root = opened::existing_root(target, &arguments.root, output).await?;
    let which = match (arguments.token, &arguments.path) {
        (Some(token), _) => Broken::Token(token),
        (None, Some(path)) => Broken::Path(root.path(path)?),
        (None, None) => Broken::Path(LockPath::root()),
    };
    let who = opened::who();
    let by = format!("{}@{}", who.name, who.host);
    for broken in root.break_lock(&which, &by, &arguments.reason).await? {
        if output.json() {
            output.write_json(&broken)?;
        } else {
            let (paths, token) = (named(&root, &broken.paths).join(" and "), broken.token);
            writeln!(output, "broke {paths}, token {token}, held by {}", broken.holder)?;
        }
    }
    Ok(())
}
