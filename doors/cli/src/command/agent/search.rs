use clap::Args;
use keyward::agents::{Search, UserData};
use keyward::records::{BUDGET_MAX, Filter};

use super::namespace::InNamespace;
use super::paging::Paging;
use super::reach::Reach;
use super::shown;
use crate::failure::Result;
use crate::output::Output;
use crate::progress::Progress;

/// Find entries by what they say
///
/// Conditions are on fields of the value (value.status) and of the metadata (metadata.source), and on
/// createdByAgent, createdAt and updatedAt: equal to a JSON value, or an object of ne, lt, lte, gt, gte,
/// in, contains, prefix and exists. Where the schema declares an index for such a field, that one is
/// asked; else the namespace is looked through. Shown as agent entries shows them, and not counted as
/// accessed.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent search --filter '{"value.status":"open"}'
  keyward agent search task/ --filter '{"metadata.priority":{"gte":3}}' -n work
  keyward agent search --everywhere --filter '{"createdByAgent":"planner"}' --json"#)]
pub struct Arguments {
    /// Only entries whose keys start with this
    #[arg(default_value = "", hide_default_value = true, conflicts_with = "everywhere")]
    prefix: String,
    #[command(flatten)]
    place: InNamespace,
    /// In all namespaces of the user
    #[arg(long, conflicts_with = "namespace")]
    everywhere: bool,
    /// What must hold, as JSON: '{"value.state":"open","metadata.votes":{"gte":3}}'
    #[arg(long, value_name = "JSON", default_value = "{}", hide_default_value = true)]
    filter: String,
    #[command(flatten)]
    paging: Paging,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { prefix, place, everywhere, filter, paging } = arguments;
    let filter = Filter::parse(&filter)?;
    let work = async |user: UserData, output: &mut Output| {
        let namespace = user.use_namespace(&place.namespace)?;
        let mut pages = paging.pages();
        let looking = match output.terminal() {
            true => Progress::none(),
            false => Progress::working("searching", output),
        };
        let question = Search::new().starting(prefix).filter(filter).budget(BUDGET_MAX);
        loop {
            let question = question.clone().limit(pages.limit()).after(pages.after());
            let found = match everywhere {
                true => user.search(&question).await?,
                false => namespace.search(&question).await?,
            };
            for entry in &found.entries {
                shown::write(entry, output)?;
            }
            if !pages.go_on(found.entries.len(), found.next, output)? {
                drop(looking);
                return Ok(());
            }
        }
    };
    reach.to_read(output, work).await
}
