use std::collections::BTreeSet;

use keyward::migrate::{Definition, Differing, Migration, Migrator, Plan, Taken};
use keyward::{Code, Data};
use serde::Serialize;

use super::How;
use super::running::{conclude, migrator, reached, shown, tell, tell_how, tell_preview};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Brings the indexes of all stores to what the schema declares, and drops those that are named.
pub async fn run(
    drop: &[String],
    set_aside: bool,
    how: &How,
    data: &Data,
    output: &mut Output,
) -> Result {
    let mut stores = Vec::new();
    for store in &data.schema().stores {
        // A store that is not there yet has everything as soon as it is made.
        let Some(records) = data.existing_records(&store.name).await? else { continue };
        let migrator = migrator(records, how);
        let plan = migrator.plan().await?;
        stores.push((store.name.as_str(), migrator, plan));
    }
    refuse_unknown(drop, data, &stores)?;
    let mut as_declared = true;
    let mut steps = 0;
    let mut taken = false;
    let mut done = Vec::new();
    for (store, migrator, mut plan) in stores {
        let named: Vec<Definition> =
            drop.iter().filter_map(|name| plan.drop(name).cloned()).collect();
        as_declared &= plan.is_empty() && named.is_empty();
        steps += named.len() + plan.build.len();
        for step in &named {
            carry_out(&migrator, step, how, (data, store), &mut done, output).await?;
        }
        if how.yes && !named.is_empty() {
            // A name may be free now.
            plan = migrator.plan().await?;
        }
        if set_aside {
            plan.build = plan.build.into_iter().map(Definition::setting_aside).collect();
        }
        for step in &plan.build {
            carry_out(&migrator, step, how, (data, store), &mut done, output).await?;
        }
        let to_drop: BTreeSet<&str> = drop.iter().map(String::as_str).collect();
        for (steps, why) in [
            (&plan.undeclared, "the schema does not declare it"),
            (&plan.foreign, "the schema does not declare its space"),
        ] {
            let left = steps.iter().filter(|step| !is_named(step, &to_drop));
            // Of a space that has other keys here, that is what is told.
            let left = left.filter(|step| plan.differing.iter().all(|it| it.space != step.space()));
            for step in left {
                tell_left(step, why, output)?;
            }
        }
        for it in &plan.differing {
            taken = true;
            tell_differing(it, output)?;
        }
        for it in plan.taken.iter().filter(|it| !to_drop.contains(it.index.as_str())) {
            taken = true;
            tell_taken(it, output)?;
        }
    }
    if as_declared && !output.json() {
        writeln!(output, "the stores have the indexes that the schema declares")?;
    } else if steps > 0 && !how.yes {
        tell_how(output)?;
    }
    if taken { Err(Failure::told(Exit::Differs)) } else { conclude(&done) }
}

fn is_named(step: &Definition, named: &BTreeSet<&str>) -> bool {
    step.index().is_some_and(|name| named.contains(name))
}

/// Refuses to drop what is not there, or what would be built again at once.
fn refuse_unknown(drop: &[String], data: &Data, stores: &[(&str, Migrator, Plan)]) -> Result {
    for name in drop {
        if stores.iter().any(|(_, _, plan)| plan.drop(name).is_some()) {
            continue;
        }
        let declared = data.schema().spaces.iter().find(|space| space.index(name).is_some());
        return Err(match declared {
            Some(space) => {
                let message = format!("the schema declares the index {name} of {}", space.name);
                Failure::invalid(message).hint("Take it out of the schema first.")
            }
            None => {
                let message = format!("the stores have no index {name}");
                Failure::new(Code::NotFound, message)
            }
        });
    }
    Ok(())
}

/// Does one step, or shows what it would do.
async fn carry_out(
    migrator: &Migrator,
    step: &Definition,
    how: &How,
    (data, store): (&Data, &str),
    done: &mut Vec<Migration>,
    output: &mut Output,
) -> Result {
    let what = step.to_string();
    if !how.yes {
        let rows = match step {
            Definition::DropIndex { .. } => "entries",
            _ => "records",
        };
        let preview = migrator.preview(step, &data.scratch(store).await?).await?;
        return tell_preview(&what, rows, &preview, how, output);
    }
    let run = |progress: crate::progress::Progress| {
        let (migrator, step) = (migrator.clone(), step.clone());
        async move { migrator.run(step, |so_far| progress.reach(reached(so_far))).await }
    };
    let migration = shown(run, &what, output).await?;
    tell(&migration, output)?;
    done.push(migration);
    Ok(())
}

#[derive(Serialize)]
struct Left<'p> {
    left: &'p str,
    space: &'p str,
    why: &'p str,
}

/// Shows an index that stays, although the schema does not declare it.
fn tell_left(step: &Definition, why: &str, output: &mut Output) -> Result {
    let (index, space) = (step.index().unwrap_or_default(), step.space());
    if output.json() {
        return output.write_json(&Left { left: index, space, why });
    }
    writeln!(output, "left: the index {index} of {space}; {why}, --drop {index} removes it")
}

#[derive(Serialize)]
struct CannotAdd<'p> {
    cannot_add: &'p str,
    space: &'p str,
    holder: &'p str,
}

#[derive(Serialize)]
struct Differs<'p> {
    differs: &'p str,
    declared: &'p str,
    keys: &'p str,
}

/// Shows a space that has other keys in the store.
fn tell_differing(differing: &Differing, output: &mut Output) -> Result {
    let Differing { space, declared, keys } = differing;
    if output.json() {
        return output.write_json(&Differs { differs: space, declared, keys });
    }
    writeln!(output, "{differing}")
}

/// Shows an index that cannot be made.
fn tell_taken(taken: &Taken, output: &mut Output) -> Result {
    let Taken { index, space, holder } = taken;
    if output.json() {
        return output.write_json(&CannotAdd { cannot_add: index, space, holder });
    }
    writeln!(
        output,
        "cannot add the index {index} to {space}: {holder}, a space that the schema does not \
         declare, has one of that name; give it another"
    )
}
