use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use keyward::records::Space;
use keyward::{Code, Key};
use serde::Serialize;

use super::address::Address;
use super::reach::Reach;
use super::shown;
use crate::batch::read_line;
use crate::command;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::input;
use crate::line::Fields;
use crate::output::Output;
use crate::pretty::pretty;

/// Print a record, or several
///
/// Prints the JSON exactly as it is stored. If the record is not there, prints nothing and exits
/// with 1. With --key or --keys, prints a line for each in the order of the keys, as query does; of a
/// record that is not there the line says so ({"missing": KEY} as JSON), and at the end the command
/// exits with 1. Reading several does not prolong their lives.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward record get notes note=n1 --as ada
  keyward record get notes user=ada note=n1 --meta | jq -r .version
  keyward record get templates template=letter --pretty
  keyward record get notes --key user:ada:notes:n1 --key user:ada:notes:n2
  keyward record list notes --as ada | keyward record get notes --keys - --as ada"#)]
pub struct Arguments {
    #[command(flatten)]
    address: Address,
    /// Print key, value, version, metadata and expiry, as a JSON object (--json does the same)
    #[arg(long)]
    meta: bool,
    /// Lay the JSON out on several lines
    #[arg(long)]
    pretty: bool,
    /// Print the record with this key; may be repeated
    #[arg(long = "key", value_name = "KEY", conflicts_with_all = ["values", "meta", "pretty"])]
    key: Vec<String>,
    /// Print the records whose keys stand in this file, one a line; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["values", "meta", "pretty", "key"])]
    keys: Option<PathBuf>,
}

#[derive(Serialize)]
struct Missing {
    missing: String,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    if !arguments.key.is_empty() {
        return get_given(&arguments, reach, output).await;
    }
    if let Some(file) = &arguments.keys {
        return get_listed(&arguments.address.space, file, reach, output).await;
    }
    let values = arguments.address.bindings(reach)?;
    let space = reach.existing(&arguments.address.space).await?;
    let key = space.key(values)?;
    let Some(record) = space.get(&key).await? else {
        let message = format!("{key} is not there");
        return Err(Failure::new(Code::NotFound, message));
    };
    let json = if arguments.meta || output.json() {
        shown::json(record, Fields::All).into()
    } else {
        record.value.to_bytes()
    };
    if arguments.pretty {
        output.write_all(&pretty(&json))?;
    } else {
        output.write_all(&json)?;
    }
    writeln!(output)
}

async fn get_given(arguments: &Arguments, reach: &Reach, output: &mut Output) -> Result {
    let keys: Vec<Key> =
        arguments.key.iter().map(|key| command::key(key)).collect::<Result<_>>()?;
    let space = reach.existing(&arguments.address.space).await?;
    let mut found_all = true;
    for some in keys.chunks(reach.limits(&arguments.address.space).await?.get_keys_max) {
        found_all &= write_page(&space, some, output).await?;
    }
    conclude(found_all)
}

async fn get_listed(name: &str, file: &Path, reach: &Reach, output: &mut Output) -> Result {
    let limits = reach.limits(name).await?;
    // A byte of a key is at most three characters of its text.
    let (keys_max, line_bytes_max) = (limits.get_keys_max, 4 * limits.key_bytes_max);
    let space = reach.existing(name).await?;
    let mut input = BufReader::new(input::open_lines(file)?.0);
    let (mut found_all, mut lines) = (true, 0);
    loop {
        let reading = tokio::task::spawn_blocking(move || {
            let page = read_keys(&mut input, keys_max, line_bytes_max, lines);
            (page, input)
        });
        let (page, rest) = reading.await.map_err(|error| {
            Failure::new(Code::Internal, format!("reading the input failed: {error}"))
        })?;
        input = rest;
        let (keys, read) = page?;
        lines += read;
        found_all &= write_page(&space, &keys, output).await?;
        if read < keys_max {
            return conclude(found_all);
        }
    }
}

/// The keys of the next lines, and how many lines these were: fewer than `lines_max` at the end.
fn read_keys(
    input: &mut impl BufRead,
    lines_max: usize,
    line_bytes_max: usize,
    before: usize,
) -> Result<(Vec<Key>, usize)> {
    let mut keys = Vec::new();
    let mut text = Vec::new();
    for read in 0..lines_max {
        text.clear();
        let at = |failure: Failure| failure.at(format_args!("line {}", before + read + 1));
        if read_line(input, line_bytes_max, &mut text).map_err(at)?.is_none() {
            return Ok((keys, read));
        }
        let line = String::from_utf8_lossy(&text);
        if !line.trim().is_empty() {
            keys.push(command::key(line.trim_end_matches(['\n', '\r'])).map_err(at)?);
        }
    }
    Ok((keys, lines_max))
}

/// Writes records, and says whether all were there.
async fn write_page(space: &Space, keys: &[Key], output: &mut Output) -> Result<bool> {
    let mut found_all = true;
    for (key, record) in keys.iter().zip(space.get_many(keys).await?) {
        match record {
            Some(record) => shown::write(record, output)?,
            None => {
                found_all = false;
                match output.json_lines() {
                    true => output.write_json(&Missing { missing: key.to_string() })?,
                    false => writeln!(output, "{key}  is not there")?,
                }
            }
        }
    }
    Ok(found_all)
}

fn conclude(found_all: bool) -> Result {
    if found_all { Ok(()) } else { Err(Failure::told(Exit::Absent)) }
}
