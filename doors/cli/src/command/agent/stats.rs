use clap::Args;
use indicatif::HumanCount;
use keyward::agents::{NamespaceStats, UserData};
use keyward::records::LIMIT_MAX;

use super::namespace::InNamespace;
use super::reach::Reach;
use super::{shown, skipped};
use crate::failure::Result;
use crate::output::{Output, size};
use crate::progress::Progress;

/// Say how much a namespace holds
///
/// How many entries, how many bytes of values and metadata, which agents made or last accessed them, and
/// when one was last updated. Everything in the namespace is read. As JSON when a program reads it, or
/// with --json.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent stats
  keyward agent stats -n files:apache/repo --json
  keyward agent stats --everywhere --user ada"#)]
pub struct Arguments {
    #[command(flatten)]
    place: InNamespace,
    /// Of each namespace of the user, one after the other
    #[arg(long, conflicts_with = "namespace")]
    everywhere: bool,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { place, everywhere } = arguments;
    let work = async |user: UserData, output: &mut Output| {
        if !everywhere {
            return tell(&user, &place.namespace, output).await;
        }
        let mut after = None;
        loop {
            let page = user.list_namespaces(after, LIMIT_MAX).await?;
            for namespace in &page.namespaces {
                tell(&user, namespace, output).await?;
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    };
    reach.to_read(output, work).await
}

async fn tell(user: &UserData, namespace: &str, output: &mut Output) -> Result {
    let counting = Progress::working("reading", output);
    let stats = user.use_namespace(namespace)?.stats().await?;
    drop(counting);
    skipped::tell(&stats.skipped);
    if output.json_lines() {
        output.write_all(stats.to_json().as_bytes())?;
        return writeln!(output);
    }
    let NamespaceStats { namespace, record_count, size_bytes, .. } = stats;
    let NamespaceStats { agents, more_agents, updated_at, .. } = stats;
    let mut agents = agents.iter().map(|agent| shown::key(agent)).collect::<Vec<_>>().join(", ");
    if more_agents {
        agents.push_str(", and more");
    }
    let none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    writeln!(output, "namespace  {}", shown::key(&namespace))?;
    writeln!(output, "entries    {}", HumanCount(record_count))?;
    writeln!(output, "size       {}", size(size_bytes))?;
    writeln!(output, "agents     {}", none(agents))?;
    writeln!(output, "updated    {}", updated_at.as_deref().unwrap_or("never"))
}
