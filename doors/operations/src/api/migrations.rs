//! Bringing a store to what the schema declares, and looking whether all is well in it.

use std::num::NonZeroU32;
use std::time::Duration;

use futures_util::future::BoxFuture;
use keyward::Code;
use keyward::migrate::{Definition, Migration, Migrator, Pause, Plan};

use crate::identity::{Identity, Need, Target};
use crate::problem::{Problem, Result};
use crate::stores::Served;

/// Waits by the machine's clock.
struct Waiting;

impl Pause for Waiting {
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// Lets those pass who may run things in a store.
pub fn admit(who: &Identity, served: &Served) -> Result<()> {
    who.require(Need::Admin, &Target::Store(&served.name))
}

/// All migrations of a store, the newest first, and what its indexes lack to be those of the schema.
pub async fn look(who: &Identity, served: &Served) -> Result<(Vec<Migration>, Plan)> {
    admit(who, served)?;
    let migrator = Migrator::new(served.records.clone(), Waiting);
    let mut migrations = migrator.history().await?;
    migrations.sort_by(|one, other| other.id.cmp(&one.id));
    Ok((migrations, migrator.plan().await?))
}

/// Begins to make and rebuild the indexes that the store lacks, after it dropped those that are named.
pub async fn begin(
    who: &Identity,
    served: &Served,
    drop: &[String],
    rate: Option<NonZeroU32>,
) -> Result<()> {
    admit(who, served)?;
    let migrator =
        Migrator::new(served.records.clone(), Waiting).rate(rate).by(who.credential().to_owned());
    let plan = migrator.plan().await?;
    let mut steps: Vec<Definition> = Vec::with_capacity(drop.len());
    for index in drop {
        let Some(step) = plan.drop(index) else {
            let detail = format!("{index:?} is no index that can be dropped");
            return Err(Problem::invalid(detail)
                .hint("Name indexes that the plan lists as undeclared or foreign."));
        };
        steps.push(step.clone());
    }
    let began = served.migrations.begin(|progress| async move {
        let mut done: Vec<Migration> = Vec::new();
        let mut dropping = true;
        loop {
            for step in steps {
                let told = |now: &Migration| {
                    progress.reach(done.iter().chain([now]).cloned().collect());
                };
                let ended = migrator.run(step, told).await?;
                done.push(ended);
            }
            if !dropping {
                return Ok(done);
            }
            dropping = false;
            // A name may be free now.
            steps = migrator.plan().await?.build;
        }
    });
    if began { Ok(()) } else { Err(under_way("migration", "migrations")) }
}

/// Begins to look through the whole store, and to mend what is safe if asked to.
pub fn examine(who: &Identity, served: &Served, repair: bool) -> Result<()> {
    admit(who, served)?;
    let rules = served.rules.clone();
    let (records, schemaless) = (served.records.clone(), served.schemaless);
    let began = served.examination.begin(|progress| async move {
        let mut doctor = keyward::doctor(records, rules).await?.repair(repair).pausing(Waiting);
        if schemaless {
            doctor = doctor.without_schema();
        }
        Ok(doctor.run(|report| progress.reach(report.clone())).await?)
    });
    if began { Ok(()) } else { Err(under_way("examination", "doctor")) }
}

fn under_way(what: &str, path: &str) -> Problem {
    Problem::new(Code::Overtaken, format!("a {what} of this store is under way"))
        .hint(format!("GET /v1/stores/{{store}}/{path} tells how far it came."))
}
