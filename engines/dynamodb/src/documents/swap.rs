//! Compare-and-swap of a document, by what it was when it was read.
//!
//! The documents of other programs have no version. So a write has a condition for every attribute that was read:
//! each must still be equal. Only what changes is written, and what somebody else adds at the same moment under a
//! name that neither was read nor is written stays, as if it had been added right after.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Delete, Put, TransactWriteItem, Update,
};
use keyward_engine::{Document, Error, ErrorKind, Json, Result};

use super::attribute::{Foreign, Members, attribute, members};
use super::{ID, id_key};
use crate::item::Item;
use crate::steps::internal;

/// How many attributes an expression can compare: it has at most 4 KiB of text.
const ATTRIBUTES_MAX: usize = 150;

/// An item that is put where none is.
pub(super) fn created(table: &str, id: &str, fields: &Json) -> Result<TransactWriteItem> {
    let mut item = id_key(id);
    for (name, json) in members_of(fields)? {
        item.insert(name.clone(), attribute(&name, json)?);
    }
    let put = Put::builder()
        .table_name(table)
        .set_item(Some(item))
        .condition_expression("attribute_not_exists(#id)")
        .expression_attribute_names("#id", ID)
        .build()
        .map_err(|error| internal(&error.to_string()))?;
    Ok(TransactWriteItem::builder().put(put).build())
}

/// An item whose attributes are changed, if it is as it was read; and what of it JSON still cannot express then.
pub(super) fn changed(
    table: &str,
    replaced: &Document,
    fields: &Json,
) -> Result<(TransactWriteItem, String)> {
    let mut old = Old::of(replaced)?;
    let new = members_of(fields)?;
    let mut expression = Expression::default();
    expression.require(&old)?;
    let (mut set, mut removed) = (Vec::new(), Vec::new());
    for (name, json) in &new {
        match old.members.iter().find(|(it, _)| it == name) {
            Some((_, before)) if before == json => {}
            found => {
                let (name_of, value) = expression.pair(name, attribute(name, json)?);
                if found.is_none() {
                    expression.terms.push(format!("attribute_not_exists({name_of})"));
                }
                set.push(format!("{name_of} = {value}"));
            }
        }
    }
    for (name, _) in &old.members {
        if !new.iter().any(|(it, _)| it == name) {
            removed.push(expression.name(name));
        }
    }
    expression.check_size()?;
    let mut change = String::new();
    if !set.is_empty() {
        change = format!("SET {}", set.join(", "));
    }
    if !removed.is_empty() {
        let space = if change.is_empty() { "" } else { " " };
        change = format!("{change}{space}REMOVE {}", removed.join(", "));
    }
    let is_kept = |name: &String| {
        let before = old.members.iter().find(|(it, _)| it == name);
        before.is_some_and(|before| new.contains(before))
    };
    old.foreign.0.retain(|name, _| is_kept(name));
    let foreign = old.foreign.to_text();
    if change.is_empty() {
        return Ok((unchanged(table, &replaced.id, expression)?, foreign));
    }
    let update = Update::builder()
        .table_name(table)
        .set_key(Some(id_key(&replaced.id)))
        .update_expression(change)
        .condition_expression(expression.terms.join(" AND "))
        .set_expression_attribute_names(Some(expression.names))
        .set_expression_attribute_values(
            (!expression.values.is_empty()).then_some(expression.values),
        );
    let update = update.build().map_err(|error| internal(&error.to_string()))?;
    Ok((TransactWriteItem::builder().update(update).build(), foreign))
}

/// An item that stays, if it is as it was read.
fn unchanged(table: &str, id: &str, expression: Expression) -> Result<TransactWriteItem> {
    let check = ConditionCheck::builder()
        .table_name(table)
        .set_key(Some(id_key(id)))
        .condition_expression(expression.terms.join(" AND "))
        .set_expression_attribute_names(Some(expression.names))
        .set_expression_attribute_values(
            (!expression.values.is_empty()).then_some(expression.values),
        );
    let check = check.build().map_err(|error| internal(&error.to_string()))?;
    Ok(TransactWriteItem::builder().condition_check(check).build())
}

/// An item that is deleted, if it is as it was read.
pub(super) fn deleted(table: &str, removed: &Document) -> Result<TransactWriteItem> {
    let mut expression = Expression::default();
    expression.require(&Old::of(removed)?)?;
    expression.check_size()?;
    let delete = Delete::builder()
        .table_name(table)
        .set_key(Some(id_key(&removed.id)))
        .condition_expression(expression.terms.join(" AND "))
        .set_expression_attribute_names(Some(expression.names))
        .set_expression_attribute_values(
            (!expression.values.is_empty()).then_some(expression.values),
        );
    let delete = delete.build().map_err(|error| internal(&error.to_string()))?;
    Ok(TransactWriteItem::builder().delete(delete).build())
}

/// A document as it was read.
struct Old<'d> {
    members: Members<'d>,
    foreign: Foreign,
}

impl<'d> Old<'d> {
    fn of(document: &'d Document) -> Result<Self> {
        Ok(Self {
            members: members_of(&document.fields)?,
            foreign: Foreign::of_text(&document.revision)?,
        })
    }

    /// An attribute as it is stored.
    fn attribute(&self, name: &str, json: &str) -> Result<AttributeValue> {
        match self.foreign.0.get(name) {
            Some(foreign) => Ok(foreign.clone()),
            None => attribute(name, json),
        }
    }
}

/// A condition and what it names.
#[derive(Default)]
struct Expression {
    terms: Vec<String>,
    names: HashMap<String, String>,
    values: Item,
}

impl Expression {
    /// The item must be there, with every attribute as it was.
    fn require(&mut self, old: &Old<'_>) -> Result<()> {
        let id = self.name(ID);
        self.terms.push(format!("attribute_exists({id})"));
        for (name, json) in &old.members {
            let (name, value) = self.pair(name, old.attribute(name, json)?);
            self.terms.push(format!("{name} = {value}"));
        }
        Ok(())
    }

    fn check_size(&self) -> Result<()> {
        if self.terms.len() <= ATTRIBUTES_MAX {
            return Ok(());
        }
        let message = format!(
            "the document has more than {ATTRIBUTES_MAX} fields, which DynamoDB cannot compare in one condition"
        );
        Err(Error::new(ErrorKind::LimitExceeded, message))
    }

    fn pair(&mut self, name: &str, value: AttributeValue) -> (String, String) {
        let placeholder = format!(":{}", self.values.len());
        self.values.insert(placeholder.clone(), value);
        (self.name(name), placeholder)
    }

    fn name(&mut self, name: &str) -> String {
        if let Some((placeholder, _)) = self.names.iter().find(|(_, it)| *it == name) {
            return placeholder.clone();
        }
        let placeholder = format!("#{}", self.names.len());
        self.names.insert(placeholder.clone(), name.to_owned());
        placeholder
    }
}

fn members_of(fields: &Json) -> Result<Members<'_>> {
    let invalid = |message: &str| Error::new(ErrorKind::Invalid, message);
    let members = members(fields.as_str())
        .ok_or_else(|| invalid("the fields of a document must be a JSON object"))?;
    if members.iter().any(|(name, _)| name == ID) {
        return Err(invalid(
            "the fields of a document must not have an _id: it is given beside them",
        ));
    }
    if members.iter().any(|(name, _)| name.is_empty()) {
        return Err(invalid(
            "a field of a document has an empty name, which DynamoDB does not allow",
        ));
    }
    Ok(members)
}
