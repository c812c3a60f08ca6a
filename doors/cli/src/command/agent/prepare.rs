use clap::Args;
use serde::Serialize;

use crate::args::{self, Target};
use crate::confirm;
use crate::failure::Result;
use crate::output::Output;
use crate::store_choice;

/// Create the indexes that lists of a store with layout=document need
///
/// A database that another program filled may lack the view (CouchDB), the global secondary index (DynamoDB) or
/// the composite index (Firestore) by which entries are listed. --plan shows what is missing and changes nothing;
/// --apply creates it and waits until it can be used; without either, the plan is shown and you are asked.
/// Entries can be read and written by key without it.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward -s "couchdb://user:password@127.0.0.1:5984/agents?layout=document" agent prepare --plan
  keyward -s "dynamodb://eu-west-1/agent_data_store?layout=document" agent prepare --apply"#)]
pub struct Arguments {
    /// Show what would be created, and change nothing
    #[arg(long, visible_alias = "dry-run", conflicts_with = "apply")]
    plan: bool,
    /// Create it
    #[arg(long)]
    apply: bool,
}

/// What is missing, or what was created.
#[derive(Serialize)]
struct Prepared<'p> {
    /// Where the store is, without a password.
    store: &'p str,
    outcome: &'static str,
    steps: &'p [String],
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    target.refuse_server(
        "creating indexes of a database",
        "Run it where the database can be reached, with its URL as -s.",
    )?;
    let Arguments { plan, apply } = arguments;
    if !plan && !apply && !confirm::can_ask(output) {
        return Err(confirm::unsaid());
    }
    let (data, store) = store_choice::of_agents(target).await?;
    let url = data.url(&store)?;
    let shown = args::shown(&url);
    if !apply {
        let steps = keyward::prepare(&url, false).await?;
        let prepared =
            Prepared { store: &shown, outcome: outcome(&steps, "planned"), steps: &steps };
        prepared.tell("to do", output)?;
        output.flush()?;
        if plan || steps.is_empty() {
            return Ok(());
        }
        confirm::ask(format_args!("Create this in {shown}?"))?;
    }
    let steps = keyward::prepare(&url, true).await?;
    Prepared { store: &shown, outcome: outcome(&steps, "prepared"), steps: &steps }
        .tell("done", output)
}

fn outcome(steps: &[String], done: &'static str) -> &'static str {
    if steps.is_empty() { "unchanged" } else { done }
}

impl Prepared<'_> {
    fn tell(&self, what: &str, output: &mut Output) -> Result {
        if output.json() {
            return output.write_json(self);
        }
        for step in self.steps {
            writeln!(output, "{what}  {step}")?;
        }
        match self.steps.len() {
            0 => writeln!(output, "{}: nothing to do", self.store),
            count => writeln!(output, "{}: {count} {what}", self.store),
        }
    }
}
