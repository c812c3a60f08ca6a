use std::collections::BTreeMap;

use clap::Args;
use keyward::Data;
use keyward::migrate::{Definition, Source};

use super::How;
use super::running::{
    conclude, migrator, reached, records_of, shown, tell, tell_how, tell_preview,
};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Give the records of a space the keys that its pattern says now
///
/// The schema has the new pattern; --from is the one that the keys have had. A variable of the new
/// key is the old key's variable of the same name, unless --variable or --field says otherwise. A
/// record whose new key is taken, or cannot be made, is told of and stays where it is. Index entries
/// follow, and so do the versions that history keeps; those of records that were deleted stay.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward migrate rekey notes --from 'notes:{id}' --field userId=userId
  keyward migrate rekey notes --from 'user:{user}:note:{id}' --yes"#)]
pub struct Arguments {
    /// The space
    space: String,
    /// The pattern that the keys have had
    #[arg(long, value_name = "PATTERN")]
    from: String,
    /// A variable of the new key, and the variable of the old key that it comes from
    #[arg(long, value_name = "NEW=OLD")]
    variable: Vec<String>,
    /// A variable of the new key, and the field of the value that it comes from
    #[arg(long, value_name = "NEW=FIELD")]
    field: Vec<String>,
    #[command(flatten)]
    how: How,
}

pub async fn run(arguments: Arguments, data: &Data, output: &mut Output) -> Result {
    let Arguments { space, from, variable, field, how } = arguments;
    let mut sources = BTreeMap::new();
    for text in &variable {
        let (new, old) = pair(text)?;
        sources.insert(new, Source::Variable(old));
    }
    for text in &field {
        let (new, field) = pair(text)?;
        sources.insert(new, Source::Field(field));
    }
    let migrator = migrator(records_of(data, &space).await?, &how);
    let to = data.schema().space(&space).map(|space| space.key.to_string()).unwrap_or_default();
    let definition = Definition::Rekey { space, from, to, sources };
    let what = definition.to_string();
    if !how.yes {
        let scratch = data.scratch(data.store_of(definition.space())?).await?;
        let preview = migrator.preview(&definition, &scratch).await?;
        tell_preview(&what, "records", &preview, &how, output)?;
        return tell_how(output);
    }
    let run = |progress: crate::progress::Progress| async move {
        migrator.run(definition, |so_far| progress.reach(reached(so_far))).await
    };
    let migration = shown(run, &what, output).await?;
    tell(&migration, output)?;
    conclude([&migration])
}

/// The two sides of `NAME=TEXT`.
pub fn pair(text: &str) -> Result<(String, String)> {
    match text.split_once('=') {
        Some((name, rest)) if !name.is_empty() => Ok((name.to_owned(), rest.to_owned())),
        _ => Err(Failure::invalid(format!("{text:?} is not of the form NAME=TEXT"))),
    }
}
