//! A commit, as what DynamoDB is to do at each of its keys.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure as OnFailure,
    TransactWriteItem, Update,
};
use jiff::Timestamp;
use keyward_engine::{Commit, Error, ErrorKind, Expect, Json, Result, Write};
use keyward_key::Key;

use crate::item::{self, Item, NUMBER, Stored, VERSION};
use crate::layout::{Layout, Place};

/// What a key must be, and what becomes of it.
pub(crate) struct Step<'c> {
    pub(crate) key: &'c Key,
    pub(crate) place: Place,
    /// Which check of the commit it is, and what is expected.
    pub(crate) check: Option<(usize, &'c Expect)>,
    write: Option<&'c Write>,
    /// The item that a number is added to, once it is known that adding blindly will not do.
    over: Option<Item>,
}

/// What is the same for all steps of a commit.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'c> {
    pub(crate) table: &'c str,
    /// The version that the commit gives.
    pub(crate) version: &'c str,
    pub(crate) now: Timestamp,
    pub(crate) now_ms: i64,
}

/// One step for each key, in the order of the writes; then the keys that are only checked.
pub(crate) fn of<'c>(commit: &'c Commit, layout: &Layout) -> Vec<Step<'c>> {
    let checks = commit.checks.iter().enumerate();
    let mut checks: HashMap<&Key, (usize, &Expect)> =
        checks.map(|(n, check)| (&check.key, (n, &check.expect))).collect();
    let step = |key, check, write| Step { key, place: layout.place(key), check, write, over: None };
    let written = commit.writes.iter();
    let mut steps: Vec<Step> =
        written.map(|write| step(write.key(), checks.remove(write.key()), Some(write))).collect();
    for check in &commit.checks {
        if let Some(only) = checks.remove(&check.key) {
            steps.push(step(&check.key, Some(only), None));
        }
    }
    steps
}

impl Step<'_> {
    /// Whether an entry is there afterwards.
    pub(crate) fn keeps_entry(&self) -> bool {
        matches!(self.write, Some(Write::Put(..) | Write::Add(..)))
    }

    /// Whether the check holds for what is there; true if there is none.
    pub(crate) fn holds(&self, found: &Item, now_ms: i64) -> bool {
        let stored = Stored(found);
        match self.check {
            None => true,
            Some((_, Expect::Absent)) => !stored.is_present(now_ms),
            Some((_, Expect::Version(version))) => {
                stored.is_present(now_ms) && stored.version() == Some(version.to_string().as_str())
            }
        }
    }

    /// Whether it expects an entry that has a version.
    pub(crate) fn expects_version(&self) -> bool {
        matches!(self.check, Some((_, Expect::Version(_))))
    }

    /// Whether what is there is what the check expects, but has expired.
    pub(crate) fn has_expired(&self, found: &Item, now_ms: i64) -> bool {
        let stored = Stored(found);
        match self.check {
            Some((_, Expect::Version(version))) => {
                !stored.is_present(now_ms) && stored.version() == Some(version.to_string().as_str())
            }
            Some((_, Expect::Absent)) | None => false,
        }
    }

    /// Takes note of what a number is to be added to, after adding blindly failed.
    pub(crate) fn add_over(&mut self, found: Item, now_ms: i64) -> Result<()> {
        let Some(Write::Add(key, amount)) = self.write else {
            return Err(internal("a condition failed that was none"));
        };
        if Stored(&found).version().is_none() {
            // It is gone by now, so that adding blindly will do.
            self.over = None;
            return Ok(());
        }
        sum(key, *amount, &found, now_ms)?;
        self.over = Some(found);
        Ok(())
    }

    pub(crate) fn item(&self, moment: Moment<'_>) -> Result<TransactWriteItem> {
        let mut condition = Condition::default();
        match self.check {
            None => {}
            Some((_, Expect::Absent)) => condition.absent(moment.now_ms),
            Some((_, Expect::Version(version))) => {
                condition.version(":is", &version.to_string());
                condition.present(moment.now_ms);
            }
        }
        let built = match (self.write, &self.over) {
            (None, _) => self.checked(moment, condition),
            (Some(Write::Delete(_)), _) => self.deleted(moment, condition),
            (Some(Write::Put(_, put)), _) => {
                let expires = put.expiry.map(|expiry| expiry.moment(moment.now));
                let metadata = put.metadata.as_ref();
                let item = item::item(&self.place, moment.version, &put.value, metadata, expires);
                put_item(moment, item, condition)
            }
            (Some(Write::Add(_, amount)), None) => self.added(moment, *amount, condition),
            (Some(Write::Add(key, amount)), Some(found)) => {
                let value = Json::from_integer(sum(key, *amount, found, moment.now_ms)?);
                let stored = Stored(found);
                let old = stored.is_present(moment.now_ms).then(|| stored.entry()).transpose()?;
                let (metadata, expires) =
                    old.as_ref().map_or((None, None), |old| (old.metadata.as_ref(), old.expires));
                condition.version(":over", stored.version().unwrap_or_default());
                let item = item::item(&self.place, moment.version, &value, metadata, expires);
                put_item(moment, item, condition)
            }
        };
        built.map_err(|error| internal(&error.to_string()))
    }

    fn checked(&self, moment: Moment<'_>, condition: Condition) -> Built {
        let (expression, values) = condition.parts();
        let check = ConditionCheck::builder()
            .table_name(moment.table)
            .set_key(Some(item::at(&self.place)))
            .set_condition_expression(expression)
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(OnFailure::AllOld);
        Ok(TransactWriteItem::builder().condition_check(check.build()?).build())
    }

    fn deleted(&self, moment: Moment<'_>, condition: Condition) -> Built {
        let (expression, values) = condition.parts();
        let delete = Delete::builder()
            .table_name(moment.table)
            .set_key(Some(item::at(&self.place)))
            .set_condition_expression(expression)
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(OnFailure::AllOld);
        Ok(TransactWriteItem::builder().delete(delete.build()?).build())
    }

    /// Adds where nothing is, or a number that has not expired and whose sum fits. Nothing was read for it, so
    /// writers of one number do not make each other start again.
    fn added(&self, moment: Moment<'_>, amount: i64, mut condition: Condition) -> Built {
        let (least, most) = (i64::MIN - amount.min(0), i64::MAX - amount.max(0));
        condition.number_or_nothing(least, most, moment.now_ms);
        let (expression, values) = condition.parts();
        let mut values = values.unwrap_or_default();
        values.insert(":zero".to_owned(), item::integer(0));
        values.insert(":amount".to_owned(), item::integer(amount));
        values.insert(":new".to_owned(), item::string(moment.version));
        let update = Update::builder()
            .table_name(moment.table)
            .set_key(Some(item::at(&self.place)))
            .update_expression(format!(
                "SET {NUMBER} = if_not_exists({NUMBER}, :zero) + :amount, {VERSION} = :new"
            ))
            .set_condition_expression(expression)
            .set_expression_attribute_values(Some(values))
            .return_values_on_condition_check_failure(OnFailure::AllOld);
        Ok(TransactWriteItem::builder().update(update.build()?).build())
    }
}

type Built = Result<TransactWriteItem, BuildError>;

fn put_item(moment: Moment<'_>, item: Item, condition: Condition) -> Built {
    let (expression, values) = condition.parts();
    let put = Put::builder()
        .table_name(moment.table)
        .set_item(Some(item))
        .set_condition_expression(expression)
        .set_expression_attribute_values(values)
        .return_values_on_condition_check_failure(OnFailure::AllOld);
    Ok(TransactWriteItem::builder().put(put.build()?).build())
}

fn sum(key: &Key, amount: i64, found: &Item, now_ms: i64) -> Result<i64> {
    let stored = Stored(found);
    let old = stored.is_present(now_ms).then(|| stored.value()).transpose()?;
    Json::sum(old.as_ref(), amount)
        .map_err(|reason| Error::new(ErrorKind::Invalid, format!("cannot add to {key}: {reason}")))
}

/// What an item must be, as an expression and the values in it. An unconditional write has none.
#[derive(Default)]
struct Condition {
    terms: Vec<String>,
    values: HashMap<String, AttributeValue>,
}

impl Condition {
    const NOW: &str = ":now";

    fn absent(&mut self, now_ms: i64) {
        self.terms.push("(attribute_not_exists(v) OR e <= :now)".to_owned());
        self.values.insert(Self::NOW.to_owned(), item::integer(now_ms));
    }

    fn present(&mut self, now_ms: i64) {
        self.terms.push("(attribute_not_exists(e) OR e > :now)".to_owned());
        self.values.insert(Self::NOW.to_owned(), item::integer(now_ms));
    }

    fn version(&mut self, placeholder: &str, version: &str) {
        self.terms.push(format!("v = {placeholder}"));
        self.values.insert(placeholder.to_owned(), item::string(version));
    }

    fn number_or_nothing(&mut self, least: i64, most: i64, now_ms: i64) {
        self.terms.push(
            "(attribute_not_exists(v) OR (n BETWEEN :least AND :most AND \
             (attribute_not_exists(e) OR e > :now)))"
                .to_owned(),
        );
        self.values.insert(":least".to_owned(), item::integer(least));
        self.values.insert(":most".to_owned(), item::integer(most));
        self.values.insert(Self::NOW.to_owned(), item::integer(now_ms));
    }

    fn parts(self) -> (Option<String>, Option<HashMap<String, AttributeValue>>) {
        if self.terms.is_empty() {
            return (None, None);
        }
        (Some(self.terms.join(" AND ")), Some(self.values))
    }
}

pub(crate) fn internal(message: &str) -> Error {
    Error::new(ErrorKind::Internal, message)
}
