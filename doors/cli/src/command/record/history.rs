use clap::Args;
use keyward::moment_text;
use keyward::records::{LIMIT_MAX, Past};

use super::address::Address;
use super::reach::Reach;
use crate::failure::Result;
use crate::line::write_text;
use crate::output::Output;

/// Print earlier versions of a record
///
/// The newest first, also of a record that was deleted: number, what was done, when, by whom, and
/// the value. The space must keep history. As JSON lines when a program reads it, or with --json.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward record history notes note=n1 --as ada
  keyward record history notes user=ada note=n1 --limit 5 --json"#)]
pub struct Arguments {
    #[command(flatten)]
    address: Address,
    /// At most so many, up to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=LIMIT_MAX as i64))]
    limit: u16,
    /// Only those before this number
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let values = arguments.address.bindings(reach)?;
    let space = reach.to_read(&arguments.address.space, output).await?;
    let key = space.key(values)?;
    let limit = usize::from(arguments.limit);
    for past in space.history(&key, arguments.before, limit).await? {
        if output.json_lines() {
            output.write_all(&line(&past))?;
        } else {
            let name = format!("{}  {:<7}  {:.0}  {}", past.seq, past.act, past.at, who(&past));
            let value = past.value.as_ref().map_or("", |value| value.as_str());
            output.write_columns(&name, value)?;
        }
    }
    Ok(())
}

fn who(past: &Past) -> String {
    match (&past.user, &past.agent) {
        (Some(user), Some(agent)) => format!("{user} through {agent}"),
        (None, Some(agent)) => format!("the operator through {agent}"),
        (Some(user), None) => user.clone(),
        (None, None) => "the operator".to_owned(),
    }
}

/// As one line of JSON, with the value byte for byte.
fn line(past: &Past) -> Vec<u8> {
    let mut line = format!("{{\"number\":{},\"act\":", past.seq).into_bytes();
    write_text(&mut line, past.act.as_str());
    line.extend_from_slice(b",\"at\":");
    write_text(&mut line, &moment_text(past.at));
    for (name, text) in [("user", &past.user), ("agent", &past.agent)] {
        line.extend_from_slice(format!(",\"{name}\":").as_bytes());
        match text {
            Some(text) => write_text(&mut line, text),
            None => line.extend_from_slice(b"null"),
        }
    }
    for (name, json) in [("value", &past.value), ("metadata", &past.metadata)] {
        if let Some(json) = json {
            line.extend_from_slice(format!(",\"{name}\":").as_bytes());
            line.extend_from_slice(json.as_bytes());
        }
    }
    line.extend_from_slice(b"}\n");
    line
}
