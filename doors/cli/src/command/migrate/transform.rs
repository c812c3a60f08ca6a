use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use clap::Args;
use keyward::migrate::Edit;
use keyward::records::{Error, Record};
use keyward::rules::admit_space;
use keyward::schema::FieldPath;
use keyward::{Data, Json};

use super::How;
use super::rekey::pair;
use super::running::{
    conclude, migrator, reached, records_of, shown, tell, tell_how, tell_preview,
};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Change the values of a space's records
///
/// Edits are done in this order: --rename, --remove, --set-default, --set; everything else in a value
/// stays as it is written. Each record is changed by a compare-and-swap, with its indexes, and only
/// if the new value fits the schema; what does not is told of and stays.
///
/// --exec gives each value to a command on its standard input, and takes what it prints as the new
/// value; printing nothing leaves the value as it is. After a kill, or if somebody else changes a
/// record meanwhile, the command may see a value again that it has changed already: see to it that
/// this does no harm.
///
/// Agents' entries are refused: keyward agent changes them.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward migrate transform notes --set-default state='"open"'
  keyward migrate transform notes --rename name=title --remove draft --yes
  keyward migrate transform notes --exec "jq -c '.n += 0'" --yes --rate 100"#)]
pub struct Arguments {
    /// The space
    space: String,
    /// Set a field, whatever it was
    #[arg(long, value_name = "FIELD=JSON")]
    set: Vec<String>,
    /// Set a field that is not there
    #[arg(long, value_name = "FIELD=JSON")]
    set_default: Vec<String>,
    /// Give a field another name
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<String>,
    /// Remove a field
    #[arg(long, value_name = "FIELD")]
    remove: Vec<String>,
    /// Give each value to a shell command
    #[arg(
        long,
        value_name = "COMMAND",
        conflicts_with_all = ["set", "set_default", "rename", "remove"]
    )]
    exec: Option<String>,
    #[command(flatten)]
    how: How,
}

pub async fn run(arguments: Arguments, data: &Data, output: &mut Output) -> Result {
    admit_space(&arguments.space)?;
    let edits = edits(&arguments)?;
    let Arguments { space, exec, how, .. } = arguments;
    let named = match &exec {
        Some(command) => format!("exec {command}"),
        None => edits.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut change = move |record: &Record| match &exec {
        Some(command) => executed(command, &record.value).map_err(Error::BadChange),
        None => Edit::apply_all(&edits, &record.value).map(Some).map_err(Error::BadChange),
    };
    let migrator = migrator(records_of(data, &space).await?, &how);
    let what = format!("change the values of {space}: {named}");
    if !how.yes {
        let scratch = data.scratch(data.store_of(&space)?).await?;
        let preview = migrator.preview_transform(&space, &mut change, &scratch).await?;
        tell_preview(&what, "records", &preview, &how, output)?;
        return tell_how(output);
    }
    let run = |progress: crate::progress::Progress| async move {
        let told = |so_far: &keyward::migrate::Migration| progress.reach(reached(so_far));
        migrator.transform(&space, &named, &mut change, told).await
    };
    let migration = shown(run, &what, output).await?;
    tell(&migration, output)?;
    conclude([&migration])
}

fn edits(arguments: &Arguments) -> Result<Vec<Edit>> {
    let mut edits = Vec::new();
    for text in &arguments.rename {
        let (old, new) = pair(text)?;
        edits.push(Edit::Rename(path(&old)?, path(&new)?));
    }
    for text in &arguments.remove {
        edits.push(Edit::Remove(path(text)?));
    }
    for text in &arguments.set_default {
        let (field, value) = pair(text)?;
        edits.push(Edit::SetDefault(path(&field)?, json(value)?));
    }
    for text in &arguments.set {
        let (field, value) = pair(text)?;
        edits.push(Edit::Set(path(&field)?, json(value)?));
    }
    if edits.is_empty() && arguments.exec.is_none() {
        let message = "there is nothing to change";
        let hint = "Give --set, --set-default, --rename, --remove or --exec.";
        return Err(Failure::invalid(message).hint(hint));
    }
    Ok(edits)
}

fn path(text: &str) -> Result<FieldPath> {
    text.parse()
        .map_err(|error: keyward::schema::FieldPathError| Failure::invalid(error.to_string()))
}

fn json(text: String) -> Result<Json> {
    let quoted = "Text needs its quotes: --set state='\"open\"'.";
    Json::parse(text).map_err(|error| Failure::invalid(error.to_string()).hint(quoted))
}

/// What a shell command makes of a value.
fn executed(command: &str, value: &Json) -> Result<Option<Json>, String> {
    let failed = |error: std::io::Error| format!("the command cannot be run: {error}");
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let input = value.to_bytes();
    let stdin = child.stdin.take();
    let writing = thread::spawn(move || {
        // A command need not read everything.
        let _ = stdin.map(|mut stdin| stdin.write_all(&input));
    });
    let ended = child.wait_with_output().map_err(failed)?;
    let _ = writing.join();
    if !ended.status.success() {
        return Err(format!("the command ended with {}", ended.status));
    }
    let text = String::from_utf8(ended.stdout).map_err(|_| "the command printed no text")?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let text = text.trim().to_owned();
    Json::parse(text).map(Some).map_err(|error| format!("the command printed no JSON: {error}"))
}
