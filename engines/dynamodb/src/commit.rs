//! Commits, each as one transaction.

use aws_sdk_dynamodb::types::{
    CancellationReason, Put, PutRequest, TransactWriteItem, WriteRequest,
};
use keyward_engine::{Commit, Error, ErrorKind, Expect, Outcome, Result, Version, Write};

use crate::client::{Pace, Sent, unknown};
use crate::engine::DynamoDb;
use crate::item::{self, Item};
use crate::layout::{self, Place};
use crate::steps::{self, Moment, Step, internal};
use crate::version;

/// How many items a transaction has at most.
const ITEMS_MAX: usize = 100;
/// How many items a batch writes at most.
const BATCH_MAX: usize = 25;
/// How often an addition is tried that others make start again.
const ADDITIONS_MAX: usize = 32;

impl DynamoDb {
    pub(crate) async fn apply(&self, commit: &Commit) -> Result<Outcome> {
        let layout = self.layout();
        let version = version::unused()?;
        let now = self.client().clock.now();
        let now_ms = self.client().now_ms();
        let table = &self.client().options.table;
        let moment = Moment { table, version: &version, now, now_ms };
        let mut steps = steps::of(commit, &layout);
        let written = steps.iter().filter(|step| step.keeps_entry());
        let mut roots: Vec<&[u8]> = written.map(|step| layout.root(step.key.as_bytes())).collect();
        roots.sort_unstable();
        roots.dedup();
        roots.retain(|root| !self.roots().contains(root));
        if steps.len() + roots.len() > ITEMS_MAX {
            self.write_roots(&roots).await?;
            self.roots().add(roots.drain(..));
        }
        for _ in 0..ADDITIONS_MAX {
            let mut items =
                steps.iter().map(|step| step.item(moment)).collect::<Result<Vec<_>>>()?;
            for root in &roots {
                items.push(root_item(table, root)?);
            }
            match self.client().transact(items).await? {
                Sent::Applied => {
                    self.roots().add(roots);
                    return Ok(applied(commit, &version));
                }
                Sent::Canceled { reasons, doubtful } => {
                    if let Some(outcome) = canceled(&mut steps, reasons, doubtful, now_ms)? {
                        return Ok(outcome);
                    }
                }
            }
        }
        let message = format!(
            "cannot commit: an entry changed {ADDITIONS_MAX} times while a number was added to it"
        );
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// Writes the rows of roots ahead of a commit that has no room for them.
    async fn write_roots(&self, roots: &[&[u8]]) -> Result<()> {
        let table = &self.client().options.table;
        for some in roots.chunks(BATCH_MAX) {
            let requests = some.iter().map(|root| {
                let put = PutRequest::builder().set_item(Some(root_attributes(root))).build();
                Ok(WriteRequest::builder()
                    .put_request(put.map_err(|error| internal(&error.to_string()))?)
                    .build())
            });
            let mut left = requests.collect::<Result<Vec<_>>>()?;
            let mut pace = Pace::new(self.client().options.retry_budget);
            while !left.is_empty() {
                let request = || {
                    let request = self.client().sdk.batch_write_item();
                    request.request_items(table, left.clone()).send()
                };
                let answer = self.client().send("cannot commit", request).await?;
                left = answer
                    .unprocessed_items
                    .and_then(|mut items| items.remove(table))
                    .unwrap_or_default();
                if !left.is_empty() && !pace.again().await {
                    let message = "cannot commit: DynamoDB has no capacity left for this table";
                    return Err(Error::new(ErrorKind::Unavailable, message));
                }
            }
        }
        Ok(())
    }
}

/// What a canceled transaction means; none if it is to be tried again with what was found.
fn canceled(
    steps: &mut [Step<'_>],
    reasons: Vec<CancellationReason>,
    doubtful: bool,
    now_ms: i64,
) -> Result<Option<Outcome>> {
    let mut failed = Vec::new();
    let mut overtaken = Vec::new();
    let nothing = Item::new();
    for (step, reason) in steps.iter_mut().zip(reasons) {
        if reason.code() != Some("ConditionalCheckFailed") {
            continue;
        }
        let found = reason.item.unwrap_or_else(|| nothing.clone());
        match step.check {
            Some(check) if !step.holds(&found, now_ms) => failed.push(check),
            _ => overtaken.push((step, found)),
        }
    }
    // A late attempt is judged anew when it arrives. A version that is gone never comes back, so it fails
    // then as well; but what is not absent now may be absent then.
    let is_certain = failed.iter().any(|(_, expect)| matches!(expect, Expect::Version(_)));
    if doubtful && !is_certain {
        return Err(unknown(
            "cannot commit: a check failed, and an earlier attempt may still arrive",
        ));
    }
    if failed.is_empty() {
        for (step, found) in overtaken {
            step.add_over(found, now_ms)?;
        }
        return Ok(None);
    }
    let mut failed: Vec<usize> = failed.into_iter().map(|(n, _)| n).collect();
    failed.sort_unstable();
    Ok(Some(Outcome::Conflicted { failed }))
}

fn applied(commit: &Commit, version: &str) -> Outcome {
    let version = Version::parse(version);
    let versions = commit.writes.iter().map(|write| match write {
        Write::Delete(_) => None,
        Write::Put(..) | Write::Add(..) => Some(version.clone()),
    });
    Outcome::Applied { revision: None, versions: versions.collect() }
}

fn root_item(table: &str, root: &[u8]) -> Result<TransactWriteItem> {
    let put = Put::builder().table_name(table).set_item(Some(root_attributes(root))).build();
    let put = put.map_err(|error| internal(&error.to_string()))?;
    Ok(TransactWriteItem::builder().put(put).build())
}

fn root_attributes(root: &[u8]) -> Item {
    item::at(&Place { partition: layout::ROOTS.to_vec(), sort: layout::root_sort(root) })
}
