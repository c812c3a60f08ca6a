use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use indicatif::HumanCount;
use keyward::{Code, Commit, Expect, Key, KeyRange, Limits, Outcome, Prefix, Store, Version, Want};
use serde::Serialize;

use super::condition;
use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::guard::Guard;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::pages::Pages;
use crate::progress::Progress;

/// Keys that one commit deletes at most.
const COMMIT_KEYS: usize = 1_000;

/// Delete keys
///
/// Says of each key whether it was there; deleting what is not there is no error. With --prefix
/// everything below a prefix is deleted: first it is counted, then you are asked, or told to repeat
/// the command with --yes. Without --yes, no more keys are deleted than were counted.
///
/// Records of a schema, agents' entries and Keyward's own keys are refused: keyward record delete and
/// keyward agent delete remove those. A prefix with such a key below it is left as it is.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward del user:7:name user:7:mail
  keyward del user:7:name --if-version 17
  keyward del --prefix user:7 --yes"#)]
pub struct Arguments {
    /// The keys, for example user:7:name
    #[arg(value_name = "KEY", required_unless_present = "prefix")]
    keys: Vec<String>,
    /// Delete everything below this prefix, whatever its depth; '' is the whole store
    #[arg(long, conflicts_with_all = ["keys", "if_version"])]
    prefix: Option<String>,
    /// Do not ask before deleting a prefix
    #[arg(long, short, requires = "prefix")]
    yes: bool,
    /// Only if the key, which must be the only one, is at this version
    #[arg(long, value_name = "VERSION")]
    if_version: Option<String>,
    /// For repair: delete any key, past schemas, indexes, locks and Keyward's own keys
    #[arg(long)]
    raw: bool,
}

#[derive(Serialize)]
struct DeletedKey {
    key: String,
    deleted: bool,
}

#[derive(Serialize)]
struct DeletedPrefix {
    prefix: String,
    deleted: u64,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    if let Some(prefix) = &arguments.prefix {
        let prefix = super::prefix(Some(prefix))?;
        let mut guard = Guard::new(target, arguments.raw).await?;
        let store = guard.over(target.open_to_read(output).await?).await?;
        return delete_prefix(&store, &prefix, &guard, arguments.yes, output).await;
    }
    let keys: Vec<Key> = arguments.keys.iter().map(|key| super::key(key)).collect::<Result<_>>()?;
    let mut guard = Guard::new(target, arguments.raw).await?;
    let store = guard.over(target.open_to_read(output).await?).await?;
    guard.admit_all(&store, &keys).await?;
    match (arguments.if_version, &keys[..]) {
        (None, _) => delete_keys(&store, &keys, output).await,
        (Some(version), [key]) => {
            delete_version(&store, key, Version::parse(&version)).await?;
            tell(key, true, output)
        }
        (Some(_), _) => Err(Failure::invalid("--if-version goes with one key only")),
    }
}

async fn delete_keys(store: &Store, keys: &[Key], output: &mut Output) -> Result {
    let mut seen = BTreeSet::new();
    let keys: Vec<Key> = keys.iter().filter(|key| seen.insert(*key)).cloned().collect();
    for some in batches(&keys, store.limits()) {
        let there = store.get_many(some).await?;
        delete(store, some).await?;
        for (key, there) in some.iter().zip(there) {
            tell(key, there.is_some(), output)?;
        }
    }
    Ok(())
}

fn tell(key: &Key, deleted: bool, output: &mut Output) -> Result {
    if output.json() {
        let key = key.to_string();
        return output.write_json(&DeletedKey { key, deleted });
    }
    writeln!(output, "{key}  {}", if deleted { "deleted" } else { "was not there" })
}

async fn delete_version(store: &Store, key: &Key, version: Version) -> Result {
    let expected = Expect::Version(version);
    let commit = Commit::new().check(key.clone(), expected.clone()).delete(key.clone());
    match store.commit(commit).await? {
        Outcome::Applied { .. } => Ok(()),
        Outcome::Conflicted { .. } => Err(condition::refusal(store, key, &expected).await?),
    }
}

async fn delete_prefix(
    store: &Store,
    prefix: &Prefix,
    guard: &Guard,
    yes: bool,
    output: &mut Output,
) -> Result {
    let range = KeyRange::under(prefix);
    let mut found = None;
    // Keys that come after the question were not confirmed.
    let mut most = u64::MAX;
    // A key that must stay is found before anything is deleted.
    if !yes || guard.is_active() {
        let counting = Progress::counted("counting", "keys", None, output);
        let mut pages = Pages::new(store, range.clone(), Want::Keys);
        let mut count = 0;
        while let Some(rows) = pages.next().await? {
            let keys: Vec<Key> = rows.into_iter().map(|row| row.key).collect();
            guard.admit_all(store, &keys).await?;
            count += keys.len() as u64;
            counting.advance(keys.len() as u64);
        }
        drop(counting);
        if !yes {
            most = count;
            if count > 0 {
                confirm(&format!("{} {}", counted(count), super::below(prefix)), output)?;
            }
        }
        found = Some(count);
    }

    let progress = Progress::counted("deleting", "keys", found, output);
    let mut deleted = 0;
    let result = delete_range(store, range, most, &mut deleted, &progress).await;
    drop(progress);
    result.map_err(|failure| {
        let gone = counted(deleted);
        failure.also(&format!("Deleted before that: {gone}. The rest is still there."))
    })?;
    if output.json() {
        let prefix = prefix.to_string();
        return output.write_json(&DeletedPrefix { prefix, deleted });
    }
    writeln!(output, "deleted {} {}", counted(deleted), super::below(prefix))
}

/// Deletes the keys of a range, at most so many.
async fn delete_range(
    store: &Store,
    range: KeyRange,
    most: u64,
    deleted: &mut u64,
    progress: &Progress,
) -> Result {
    let interrupt = Interrupt::listen().await;
    let mut pages = Pages::new(store, range, Want::Keys);
    while let Some(rows) = pages.next().await? {
        let keys: Vec<Key> = rows.into_iter().map(|row| row.key).collect();
        let left = usize::try_from(most - *deleted).unwrap_or(usize::MAX);
        if left == 0 {
            break;
        }
        for some in batches(&keys[..keys.len().min(left)], store.limits()) {
            if interrupt.pressed() {
                return Err(Failure::interrupted("interrupted"));
            }
            delete(store, some).await?;
            *deleted += some.len() as u64;
            progress.advance(some.len() as u64);
        }
    }
    Ok(())
}

fn counted(keys: u64) -> String {
    match keys {
        1 => "1 key".to_owned(),
        keys => format!("{} keys", HumanCount(keys)),
    }
}

/// Asks whether to delete, if there is somebody to ask.
pub fn confirm(what: &str, output: &Output) -> Result {
    let (mut stderr, stdin) = (io::stderr(), io::stdin());
    let refused = |message: &str| {
        Failure::new(Code::Unconfirmed, message)
            .hint("Repeat the command with --yes to delete them; nothing was deleted.")
    };
    if output.json() || !stderr.is_terminal() || !stdin.is_terminal() {
        return Err(refused(&format!("this would delete {what}")));
    }
    let mut answer = String::new();
    let asked = write!(stderr, "Delete {what}? [y/N] ")
        .and_then(|()| stderr.flush())
        .and_then(|()| stdin.lock().read_line(&mut answer));
    match asked {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        Ok(_) => Err(refused("you did not say yes")),
        Err(error) => Err(Failure::file("cannot ask on this terminal", &error)),
    }
}

/// Keys in pieces that fit one commit each.
fn batches<'k>(keys: &'k [Key], limits: &Limits) -> impl Iterator<Item = &'k [Key]> {
    let keys_max = limits.commit_keys_max.min(COMMIT_KEYS);
    let keys_max = keys_max.min(limits.commit_bytes_max / limits.key_bytes_max.max(1));
    keys.chunks(keys_max.max(1))
}

async fn delete(store: &Store, keys: &[Key]) -> Result {
    let commit = keys.iter().cloned().fold(Commit::new(), Commit::delete);
    // Without a check nothing can be refused.
    let _: Outcome = store.commit(commit).await?;
    Ok(())
}
