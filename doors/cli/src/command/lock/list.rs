use std::time::Duration;

use clap::Args;
use keyward::locks::{Root, Standing};
use serde::Serialize;

use super::claim::named;
use super::opened;
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// List locks: who holds what, and who waits
///
/// Those who wait stand below those who hold, in the order in which they are served. A holder that
/// is dead is replaced by the next who asks. When a program reads it, or with --json, one JSON
/// object for each holder and waiter.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward lock list
  keyward lock list page:7
  keyward lock list --json | jq 'select(.life == "dead")'"#)]
pub struct Arguments {
    /// Only the locks below this key; all of the store if left out
    root: Option<String>,
}

const ROOTS_PER_PAGE: usize = 100;

#[derive(Serialize)]
struct Shown<'s> {
    root: String,
    role: &'static str,
    paths: Vec<String>,
    mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    who: &'s keyward::locks::Who,
    since: &'s str,
    age_ms: u64,
    life: &'static str,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    if let Some(root) = &arguments.root {
        let root = opened::existing_root(target, root, output).await?;
        return show(&root, &root.list().await?, output);
    }
    let locks = opened::all(target, output).await?;
    let mut after = None;
    loop {
        let page = locks.roots(after.take(), ROOTS_PER_PAGE).await?;
        for key in page.roots {
            let root = locks.root(key)?;
            show(&root, &root.list().await?, output)?;
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

fn show(root: &Root, standing: &Standing, output: &mut Output) -> Result {
    let holders = standing.holders.iter().map(|holder| Shown {
        root: root.key().to_string(),
        role: "holder",
        paths: named(root, &holder.paths),
        mode: holder.mode.to_string(),
        token: Some(holder.token),
        who: &holder.who,
        since: &holder.since,
        age_ms: millis(holder.age),
        life: holder.life.as_str(),
    });
    let waiters = standing.waiters.iter().map(|waiter| Shown {
        root: root.key().to_string(),
        role: "waiter",
        paths: named(root, &waiter.paths),
        mode: waiter.mode.to_string(),
        token: None,
        who: &waiter.who,
        since: &waiter.since,
        age_ms: millis(waiter.age),
        life: waiter.life.as_str(),
    });
    for shown in holders.chain(waiters) {
        if output.json_lines() {
            output.write_json(&shown)?;
        } else {
            shown.tell(output)?;
        }
    }
    Ok(())
}

impl Shown<'_> {
    fn tell(&self, output: &mut Output) -> Result {
        let Self { root, role, mode, who, life, .. } = self;
        let paths = self.paths.join(" and ");
        let token = self.token.map(|token| format!(", token {token}")).unwrap_or_default();
        let life = if *life == "alive" { String::new() } else { format!(", {life}") };
        let verb = if *role == "holder" { "held" } else { "  wanted" };
        let age = age(self.age_ms);
        let plain: String = who.to_string().chars().map(printable).collect();
        writeln!(output, "{root}  {paths}  {verb} {mode} for {age} by {plain}{token}{life}")
    }
}

/// A terminal is never told what to do.
fn printable(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

fn millis(age: Duration) -> u64 {
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
}

fn age(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{}s", seconds / 60, seconds % 60),
        _ => format!("{}h{}m", seconds / 3_600, seconds / 60 % 60),
    }
}
