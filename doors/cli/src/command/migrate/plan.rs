use keyward::Data;
use keyward::migrate::Definition;

use super::How;
use super::running::{conclude, migrator, reached, shown, tell, tell_how, tell_preview};
use crate::failure::Result;
use crate::output::Output;

/// Brings the indexes of all stores to what the schema declares.
pub async fn run(how: &How, data: &Data, output: &mut Output) -> Result {
    let mut steps = 0;
    let mut done = Vec::new();
    for store in &data.schema().stores {
        // A store that is not there yet has everything as soon as it is made.
        let Some(records) = data.existing_records(&store.name).await? else { continue };
        let migrator = migrator(records, how);
        for step in migrator.plan().await? {
            steps += 1;
            let what = step.to_string();
            if !how.yes {
                let rows = match step {
                    Definition::DropIndex { .. } => "entries",
                    _ => "records",
                };
                tell_preview(&what, rows, &migrator.preview(&step).await?, output)?;
                continue;
            }
            let run = |progress: crate::progress::Progress| {
                let migrator = migrator.clone();
                async move { migrator.run(step, |so_far| progress.reach(reached(so_far))).await }
            };
            let migration = shown(run, &what, output).await?;
            tell(&migration, output)?;
            done.push(migration);
        }
    }
    if steps == 0 && !output.json() {
        writeln!(output, "the stores have the indexes that the schema declares")?;
    } else if steps > 0 && !how.yes {
        tell_how(output)?;
    }
    conclude(&done)
}
