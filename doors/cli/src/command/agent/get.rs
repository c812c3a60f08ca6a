use clap::Args;
use keyward::Json;
use keyward::agents::{Namespace, UserData};
use serde::Serialize;

use super::namespace::InNamespace;
use super::reach::Reach;
use super::{shown, written};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::input;
use crate::output::Output;
use crate::pretty::pretty;

/// Print the value of an entry, or of several
///
/// Prints the JSON exactly as it is stored. If the entry is not there, prints nothing and exits with 1;
/// with --default, prints that instead. With several keys, prints a line for each in their order; of an
/// entry that is not there the line says so ({"missing": KEY} as JSON), and at the end the command exits
/// with 1. With --agent each counts as accessed once.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent get greeting --agent writer
  keyward agent get src/main.py -n files:apache/repo --pretty
  keyward agent get greeting --meta | jq -r ._rev
  keyward agent get counter --default 0
  keyward agent get a b c --json"#)]
pub struct Arguments {
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    #[command(flatten)]
    place: InNamespace,
    /// Print the whole entry as a JSON document: metadata, version, who made and accessed it, and when
    /// (--json does the same)
    #[arg(long)]
    meta: bool,
    /// Lay the JSON out on several lines
    #[arg(long)]
    pretty: bool,
    /// Print this if the entry is not there
    #[arg(long, value_name = "JSON", allow_hyphen_values = true, conflicts_with = "meta")]
    default: Option<String>,
}

#[derive(Serialize)]
struct Missing<'k> {
    missing: &'k str,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let default = arguments.default.as_deref();
    let default = default.map(|text| input::json("value", text)).transpose()?;
    match &arguments.keys[..] {
        [key] => {
            let one = async |user: UserData, output: &mut Output| {
                let namespace = user.use_namespace(&arguments.place.namespace)?;
                get(&namespace, key, &arguments, default, output).await
            };
            // Where a default will do, a store that is not there has no entries.
            match arguments.default {
                Some(_) => reach.to_read(output, one).await,
                None => reach.existing(output, one).await,
            }
        }
        _ if default.is_some() || arguments.meta || arguments.pretty => {
            Err(Failure::invalid("--default, --meta and --pretty go with one key only")
                .hint("agent entries prints whole entries."))
        }
        keys => {
            let several = async |user: UserData, output: &mut Output| {
                get_several(&user.use_namespace(&arguments.place.namespace)?, keys, output).await
            };
            reach.existing(output, several).await
        }
    }
}

async fn get(
    namespace: &Namespace,
    key: &str,
    arguments: &Arguments,
    default: Option<Json>,
    output: &mut Output,
) -> Result {
    let found = if default.is_none() && (arguments.meta || output.json()) {
        namespace.entry(key).await?.map(|entry| entry.to_document_with_rev())
    } else {
        namespace.get(key).await?.or(default)
    };
    let json = found.ok_or_else(|| written::absent(namespace.name(), key))?;
    match arguments.pretty {
        true => output.write_all(&pretty(json.as_bytes()))?,
        false => output.write_all(json.as_bytes())?,
    }
    writeln!(output)
}

async fn get_several(namespace: &Namespace, keys: &[String], output: &mut Output) -> Result {
    let mut found_all = true;
    for some in keys.chunks(Namespace::TOGETHER_MAX) {
        for (key, value) in some.iter().zip(namespace.get_many(some).await?) {
            match value {
                Some(value) => write(key, &value, output)?,
                None => {
                    found_all = false;
                    match output.json_lines() {
                        true => output.write_json(&Missing { missing: key })?,
                        false => writeln!(output, "{}  is not there", shown::key(key))?,
                    }
                }
            }
        }
    }
    if found_all { Ok(()) } else { Err(Failure::told(Exit::Absent)) }
}

fn write(key: &str, value: &Json, output: &mut Output) -> Result {
    if !output.json_lines() {
        return output.write_columns(&shown::key(key), value.as_str());
    }
    let key = serde_json::Value::from(key);
    writeln!(output, "{{\"key\":{key},\"value\":{}}}", value.as_str())
}
