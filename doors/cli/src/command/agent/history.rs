use clap::Args;
use keyward::agents::{PastEntry, UserData};
use keyward::moment_text;
use keyward::records::LIMIT_MAX;
use serde::Serialize;
use serde_json::value::RawValue;

use super::namespace::InNamespace;
use super::reach::Reach;
use crate::failure::Result;
use crate::output::Output;
use crate::queues::raw;

/// Print earlier versions of an entry
///
/// The newest first, also of an entry that was deleted: number, what was done, when, by which agent in
/// which run, and the value. As JSON lines when a program reads it, or with --json.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent history plan
  keyward agent history src/main.py -n files:apache/repo --limit 5 --json"#)]
pub struct Arguments {
    /// The key
    key: String,
    #[command(flatten)]
    place: InNamespace,
    /// At most so many; without it, all that are kept
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Only those before this number
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { key, place, limit, mut before } = arguments;
    let work = async |user: UserData, output: &mut Output| {
        let namespace = user.use_namespace(&place.namespace)?;
        let mut left = limit.map_or(usize::MAX, |limit| limit as usize);
        while left > 0 {
            let limit = left.min(LIMIT_MAX);
            let page = namespace.history(&key, before, limit).await?;
            for past in &page {
                write(past, output)?;
            }
            left -= page.len();
            before = page.last().map(|past| past.seq);
            if page.len() < limit {
                break;
            }
        }
        Ok(())
    };
    reach.to_read(output, work).await
}

fn write(past: &PastEntry, output: &mut Output) -> Result {
    if output.json_lines() {
        return output.write_json(&Line::of(past)?);
    }
    let who = who(past.user.as_deref(), past.agent.as_deref(), past.run.as_deref());
    let name = format!("{}  {:<8}  {:.0}  {who}", past.seq, past.act.to_string(), past.at);
    match (&past.value, &past.redacted) {
        (Some(value), _) => output.write_columns(&name, value.as_str()),
        (None, Some(by)) => {
            let who = self::who(by.user.as_deref(), by.agent.as_deref(), by.run.as_deref());
            output.write_columns(&name, &format!("redacted {:.0} by {who}", by.at))
        }
        (None, None) => output.write_columns(&name, ""),
    }
}

fn who(user: Option<&str>, agent: Option<&str>, run: Option<&str>) -> String {
    let mut who = user.unwrap_or("the operator").to_owned();
    if let Some(agent) = agent {
        who.push_str(&format!(" through {agent}"));
    }
    if let Some(run) = run {
        who.push_str(&format!(" in {run}"));
    }
    who
}

/// A version as one line of JSON, with the value byte for byte.
#[derive(Serialize)]
struct Line<'p> {
    number: u64,
    act: &'p str,
    at: String,
    user: Option<&'p str>,
    agent: Option<&'p str>,
    run: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redacted: Option<Redacted<'p>>,
}

#[derive(Serialize)]
struct Redacted<'p> {
    at: String,
    user: Option<&'p str>,
    agent: Option<&'p str>,
    run: Option<&'p str>,
}

impl<'p> Line<'p> {
    fn of(past: &'p PastEntry) -> Result<Self> {
        Ok(Self {
            number: past.seq,
            act: past.act.as_str(),
            at: moment_text(past.at),
            user: past.user.as_deref(),
            agent: past.agent.as_deref(),
            run: past.run.as_deref(),
            value: past.value.as_ref().map(raw).transpose()?,
            metadata: past.metadata.as_ref().map(raw).transpose()?,
            redacted: past.redacted.as_ref().map(|by| Redacted {
                at: moment_text(by.at),
                user: by.user.as_deref(),
                agent: by.agent.as_deref(),
                run: by.run.as_deref(),
            }),
        })
    }
}
