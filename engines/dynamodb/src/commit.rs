//! Commits, each as one transaction.

use aws_sdk_dynamodb::types::{
    CancellationReason, Put, PutRequest, TransactWriteItem, WriteRequest,
};
use jiff::{SignedDuration, Timestamp};
use keyward_engine::{Commit, Error, ErrorKind, Expect, Outcome, Result, Version, Write};
use tokio::time::timeout;

use crate::client::{Pace, Sent, unknown};
use crate::engine::DynamoDb;
use crate::error::{Cause, Failure};
use crate::item::{self, Item, Stored};
use crate::layout::{self, Place};
use crate::options::RESENT_MAX;
use crate::steps::{self, Moment, Step, internal};
use crate::version;

/// How many items a transaction has at most.
const ITEMS_MAX: usize = 100;
/// How many items a batch writes at most.
const BATCH_MAX: usize = 25;
/// How often an addition is tried that others make start again.
const ADDITIONS_MAX: usize = 32;

/// What the attributes of an item tell about whether a check of it holds.
const PLACE_AND_STATE: &str = "p, s, v, e";

/// A commit on its way.
struct Journey<'c> {
    engine: &'c DynamoDb,
    steps: Vec<Step<'c>>,
    /// Those whose rows it writes.
    roots: &'c [&'c [u8]],
    /// The version that it gives.
    version: String,
}

/// A transaction, as it is sent.
struct Attempt {
    /// By which DynamoDB recognises it if it is sent again.
    token: String,
    items: Vec<TransactWriteItem>,
    /// The time by which its conditions are judged.
    now: Timestamp,
    now_ms: i64,
}

/// What a read tells about a transaction whose answer was lost.
enum Trace {
    /// It was carried out.
    Applied,
    /// An entry that it expects has expired: if it has not been carried out yet, it must not be any more.
    TooLate,
    /// It may be sent again.
    Nothing,
}

impl DynamoDb {
    pub(crate) async fn apply(&self, commit: &Commit) -> Result<Outcome> {
        let (layout, now) = (self.layout(), self.client().clock.now());
        let steps = steps::of(commit, &layout);
        let written = steps.iter().filter(|step| step.keeps_entry());
        let mut roots: Vec<&[u8]> = written.map(|step| layout.root(step.key.as_bytes())).collect();
        roots.sort_unstable();
        roots.dedup();
        if self.roots().is_check_due(&roots, now) {
            self.check_table(now).await?;
        }
        let claim = self.roots().claim(roots, now);
        let outcome = self.apply_with_roots(commit, steps, &claim.roots).await;
        match &outcome {
            Ok(outcome) if outcome.is_applied() => claim.confirm(),
            Err(error) if error.kind() == ErrorKind::Misplaced => self.roots().forget_all(),
            Ok(_) | Err(_) => {}
        }
        outcome
    }

    /// Looks whether the table is still the one whose roots are known. If that cannot be told, rows are written again,
    /// which is always right.
    async fn check_table(&self, now: Timestamp) -> Result<()> {
        let found = self.client().existing().await;
        if let Ok(Some(table)) = &found
            && table.layout != self.layout()
        {
            let message = format!(
                "the table {:?} was made again with partition_segments={}, not {}, while it was open",
                self.client().options.table,
                table.layout.segments,
                self.layout().segments
            );
            self.roots().forget_all();
            return Err(Error::new(ErrorKind::Misplaced, message).advise("Open the store again."));
        }
        self.roots().checked(found.ok().flatten(), now);
        Ok(())
    }

    async fn apply_with_roots<'c>(
        &'c self,
        commit: &Commit,
        steps: Vec<Step<'c>>,
        mut roots: &'c [&'c [u8]],
    ) -> Result<Outcome> {
        if steps.len() + roots.len() > ITEMS_MAX {
            self.write_roots(roots).await?;
            roots = &[];
        }
        let mut journey = Journey { engine: self, steps, roots, version: version::unused()? };
        for _ in 0..ADDITIONS_MAX {
            let (sent, now_ms) = journey.transact().await?;
            match sent {
                Sent::Applied => return Ok(applied(commit, &journey.version)),
                Sent::Canceled { reasons, doubtful } => {
                    let outcome = canceled(&mut journey.steps, reasons, doubtful, now_ms)?;
                    if let Some(outcome) = outcome {
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

impl Journey<'_> {
    /// Sends the transaction until its outcome is known or the time is up; with it comes the time by which the last
    /// attempt was judged.
    ///
    /// An attempt that was certainly not carried out is followed by another, judged by the time of then: an entry may
    /// have expired meanwhile. One that may have been carried out is sent again as it was, under its token, so that it
    /// is not done twice; but not once an entry that it expects has expired.
    async fn transact(&self) -> Result<(Sent, i64)> {
        let client = self.engine.client();
        let mut pace = Pace::new(client.options.retry_budget);
        let mut attempt = self.attempt()?;
        let mut doubtful = false;
        loop {
            let request = client.sdk.transact_write_items().client_request_token(&attempt.token);
            let request = request.set_transact_items(Some(attempt.items.clone()));
            let failure = match request.send().await {
                Ok(_) => return Ok((Sent::Applied, attempt.now_ms)),
                Err(error) => Failure::of("cannot commit", &error),
            };
            match failure.cause {
                Cause::Checked(reasons) => {
                    return Ok((Sent::Canceled { reasons, doubtful }, attempt.now_ms));
                }
                Cause::Refused => return Err(settled(failure.error, doubtful)),
                Cause::Unanswered => doubtful = true,
                Cause::Postponed => {}
            }
            loop {
                // The pace stands still while a machine sleeps, and DynamoDB forgets tokens meanwhile.
                let slept = client.clock.now().duration_since(attempt.now);
                let resent_max = SignedDuration::try_from(RESENT_MAX).unwrap_or_default();
                if (doubtful && slept >= resent_max) || !pace.again().await {
                    return Err(settled(failure.error, doubtful));
                }
                if !doubtful {
                    attempt = self.attempt()?;
                    break;
                }
                match self.trace().await {
                    Some(Trace::Nothing) => break,
                    Some(Trace::Applied) => return Ok((Sent::Applied, attempt.now_ms)),
                    Some(Trace::TooLate) => {
                        let message = "cannot commit: an attempt got no answer, and an entry that it expects has \
                                       expired since";
                        return Err(unknown(message));
                    }
                    // Without knowing that, it is not sent again.
                    None => {}
                }
            }
        }
    }

    /// The transaction as it is to be sent now, under a token of its own.
    fn attempt(&self) -> Result<Attempt> {
        let client = self.engine.client();
        let (now, now_ms) = (client.clock.now(), client.now_ms());
        let table = &client.options.table;
        let moment = Moment { table, version: &self.version, now, now_ms };
        let items = self.steps.iter().map(|step| step.item(moment));
        let items = items.chain(self.roots.iter().map(|root| root_item(table, root)));
        Ok(Attempt { token: version::unused()?, items: items.collect::<Result<_>>()?, now, now_ms })
    }

    /// Looks for traces of a transaction whose answer was lost; none if DynamoDB does not say. Commits that expect no
    /// version need none: for them it is never too late.
    async fn trace(&self) -> Option<Trace> {
        if !self.steps.iter().any(Step::expects_version) {
            return Some(Trace::Nothing);
        }
        let client = self.engine.client();
        let places: Vec<Place> = self.steps.iter().map(|step| step.place.clone()).collect();
        let read = self.engine.batch(&places, Some(PLACE_AND_STATE));
        // It may take as long as an attempt.
        let found = timeout(client.options.answer_timeout, read).await.ok()?.ok()?;
        let now_ms = client.now_ms();
        let mut steps = self.steps.iter().filter_map(|step| Some((step, found.get(&step.place)?)));
        let is_ours = |item: &Item| Stored(item).version() == Some(self.version.as_str());
        if steps.clone().any(|(step, item)| step.keeps_entry() && is_ours(item)) {
            return Some(Trace::Applied);
        }
        Some(match steps.any(|(step, item)| step.has_expired(item, now_ms)) {
            true => Trace::TooLate,
            false => Trace::Nothing,
        })
    }
}

/// The error of a transaction, whatever came last: an attempt before it may have been carried out.
fn settled(error: Error, doubtful: bool) -> Error {
    if doubtful { unknown(error.message()) } else { error }
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
