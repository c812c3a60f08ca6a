//! Memories: the directory of text files that models edit.

use keyward::agents::{Memories, MemoryAnswer, MemoryCommand};

use super::{Behalf, reach};
use crate::identity::{Identity, Need};
use crate::problem::Result;
use crate::services::Services;

/// Does what a command says. To view takes the scope to read the namespace of memories, everything
/// else that to write it.
pub async fn run(
    who: &Identity,
    services: &Services,
    behalf: &Behalf,
    command: &MemoryCommand,
) -> Result<MemoryAnswer> {
    let reached = reach(who, services, behalf, Memories::NAMESPACE)?;
    match changed(command) {
        None => reached.require(who, Need::Read)?,
        Some(paths) => {
            reached.require(who, Need::Write)?;
            for path in paths {
                // One that is none is told by the command itself.
                if let Some(key) = path.strip_prefix("/memories/").filter(|key| !key.is_empty()) {
                    reached.admit(who, key)?;
                }
            }
            // Those in a directory are not named, but counted.
            if let MemoryCommand::Delete { path } = command {
                let files = reached.user.memories()?.count(path).await?;
                who.touches_more(files.saturating_sub(1));
            }
        }
    }
    Ok(reached.user.memories()?.run(command).await?)
}

/// How many files a command removes. Whoever may not remove them learns nothing of how many there are.
pub async fn count_removed(
    who: &Identity,
    services: &Services,
    behalf: &Behalf,
    command: &MemoryCommand,
) -> Result<usize> {
    let MemoryCommand::Delete { path } = command else { return Ok(0) };
    let reached = reach(who, services, behalf, Memories::NAMESPACE)?;
    reached.require(who, Need::Write)?;
    Ok(reached.user.memories()?.count(path).await?)
}

/// The paths that a command changes; `None` if it only looks.
fn changed(command: &MemoryCommand) -> Option<Vec<&str>> {
    match command {
        MemoryCommand::View { .. } => None,
        MemoryCommand::Create { path, .. }
        | MemoryCommand::StrReplace { path, .. }
        | MemoryCommand::Insert { path, .. }
        | MemoryCommand::Delete { path } => Some(vec![path]),
        MemoryCommand::Rename { old_path, new_path } => Some(vec![old_path, new_path]),
    }
}
