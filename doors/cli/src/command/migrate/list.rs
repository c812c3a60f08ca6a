use clap::Args;
use keyward::Data;

use super::How;
use super::running::{migrator, tell};
use crate::failure::Result;
use crate::output::Output;

/// List the migrations of the schema's stores, the oldest first
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward migrate list
  keyward migrate list --json"#)]
pub struct Arguments {}

pub async fn run(_: Arguments, data: &Data, output: &mut Output) -> Result {
    let how = How { yes: false, dry_run: false, problems: 0, rate: None };
    for store in &data.schema().stores {
        let Some(records) = data.existing_records(&store.name).await? else { continue };
        for migration in migrator(records, &how).history().await? {
            if !output.json() {
                write!(output, "{} by {}: ", migration.id, migration.by)?;
            }
            tell(&migration, output)?;
        }
    }
    Ok(())
}
