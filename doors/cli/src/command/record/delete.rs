use clap::Args;
use indicatif::HumanCount;
use keyward::Bindings;
use keyward::records::{LIMIT_MAX, Listing, Space};
use serde::Serialize;

use super::address::{Address, bindings};
use super::reach::Reach;
use super::written::{if_match, tell};
use crate::command::del::confirm;
use crate::failure::Result;
use crate::output::Output;

/// Delete a record and its index entries
///
/// Says whether it was there; deleting what is not there is no error. With --prefix every record is
/// deleted whose key begins with the values that are given, with --all every record of the space (of
/// the user, with --as): first they are counted, then you are asked, or told to repeat the command
/// with --yes.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward record delete notes note=n1 --as ada
  keyward record delete notes user=ada note=n1 --if-match 17
  keyward record delete notes user=ada --prefix --yes
  keyward record delete notes --all --as ada"#)]
pub struct Arguments {
    #[command(flatten)]
    address: Address,
    /// Only if the record is at this version
    #[arg(long, value_name = "VERSION")]
    if_match: Option<String>,
    /// Delete every record whose key begins with these values
    #[arg(long, group = "several", requires = "values", conflicts_with = "if_match")]
    prefix: bool,
    /// Delete every record of the space that you may delete
    #[arg(long, group = "several", conflicts_with_all = ["values", "if_match"])]
    all: bool,
    /// Do not ask before deleting several
    #[arg(long, short, requires = "several")]
    yes: bool,
}

#[derive(Serialize)]
struct Deleted<'d> {
    space: &'d str,
    deleted: usize,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    reach.admit_write(&arguments.address.space)?;
    if arguments.prefix || arguments.all {
        return delete_several(&arguments, reach, output).await;
    }
    let values = arguments.address.bindings(reach)?;
    let space = reach.to_read(&arguments.address.space, output).await?;
    let key = space.key(values)?;
    let expect = if_match(arguments.if_match.as_deref());
    let written = space.delete(&key, expect.clone()).await?;
    tell(&key, &expect, written, output)
}

async fn delete_several(arguments: &Arguments, reach: &Reach, output: &mut Output) -> Result {
    let name = &arguments.address.space;
    let values = bindings(reach.declaration(name)?, &arguments.address.values)?;
    let space = reach.to_read(name, output).await?;
    // Records that come after the question were not confirmed.
    let mut most = usize::MAX;
    if !arguments.yes {
        most = count(&space, values.clone()).await?;
        if most > 0 {
            confirm(&format!("{} of {name}", counted(most)), output)?;
        }
    }
    let deleted = space.delete_prefix_up_to(values, most).await?;
    if output.json() {
        return output.write_json(&Deleted { space: name, deleted });
    }
    writeln!(output, "deleted {} of {name}", counted(deleted))
}

async fn count(space: &Space, values: Bindings) -> Result<usize> {
    let mut listing = Listing::new(values).limit(LIMIT_MAX);
    let mut found = 0;
    loop {
        let page = space.list(&listing).await?;
        found += page.items.len();
        match page.next {
            Some(next) => listing.cursor = Some(next),
            None => return Ok(found),
        }
    }
}

fn counted(records: usize) -> String {
    match records {
        1 => "1 record".to_owned(),
        records => format!("{} records", HumanCount(records as u64)),
    }
}
