//! A question to a space, as query and explain take it.

use clap::Args;
use keyward::records::{BUDGET_MAX, Bound, By, Filter, Query, Span};
use keyward::schema::{FieldPath, Index, IndexKind, Part, Scope, Space as Declaration, ValueKind};
use serde_json::Value;

use super::address::{bindings, is_assignment};
use super::reach::Reach;
use crate::failure::{Failure, Result};
use crate::pages::order;

/// What must hold, and what to show.
#[derive(Debug, Args)]
pub struct Terms {
    /// Whose records, for the operator: with --as it is that user's
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,
    /// What must hold besides, as JSON: '{"state":"open","votes":{"gte":3}}'
    #[arg(long, value_name = "JSON")]
    pub filter: Option<String>,
    /// Show these fields only
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',')]
    pub fields: Vec<FieldPath>,
}

impl Terms {
    /// The filter, which may be empty.
    pub fn filter(&self) -> Result<Filter> {
        Ok(self.filter.as_deref().map(Filter::parse).transpose()?.unwrap_or_default())
    }
}

/// A question to a space.
#[derive(Debug, Args)]
pub struct Question {
    /// The space, as the schema calls it
    pub space: String,
    /// The index to ask; or, to read by key, the key's first variables, as in user=ada
    #[arg(value_name = "INDEX | VAR=VALUE")]
    by: Vec<String>,
    /// The index's first field has this value; repeated, the next field that one
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    equal: Vec<String>,
    /// The next field is at least this
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    from: Option<String>,
    /// The next field is at most this
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    to: Option<String>,
    /// The next field is more than this
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, conflicts_with = "from")]
    above: Option<String>,
    /// The next field is less than this
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, conflicts_with = "to")]
    below: Option<String>,
    /// The next field starts with this text
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["from", "to", "above", "below"])]
    prefix: Option<String>,
    /// From the last to the first
    #[arg(long)]
    desc: bool,
    #[command(flatten)]
    terms: Terms,
    /// Read so many entries for a page at most [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=BUDGET_MAX as i64))]
    budget: Option<u32>,
    /// Allow reading everything where no index helps
    #[arg(long)]
    allow_scan: bool,
}

impl Question {
    /// The query for one page.
    pub fn query(self, reach: &Reach) -> Result<Query> {
        let declaration = reach.declaration(&self.space)?;
        let mut query = match &self.by[..] {
            [name] if !is_assignment(name) => {
                let index = declaration.index(name);
                let by = match index {
                    Some(index) => self.by_index(index)?,
                    // The space refuses it, and names those there are.
                    None => By::Index { name: name.clone(), equal: Vec::new(), span: None },
                };
                if let Some(index) = index {
                    self.needs_owner(declaration, index, reach)?;
                }
                Query { by, ..Query::index(name) }
            }
            variables => {
                let spans = [&self.from, &self.to, &self.above, &self.below, &self.prefix];
                if !self.equal.is_empty() || spans.iter().any(|span| span.is_some()) {
                    let message = "--equal, --from, --to, --above, --below and --prefix ask an \
                                   index, and none is named";
                    return Err(Failure::invalid(message).hint(known(declaration)));
                }
                let values = bindings(declaration, variables)?;
                Query::key(values)
            }
        };
        query.owner = self.terms.owner.clone();
        query.filter = self.terms.filter()?;
        query.order = order(self.desc);
        query.allow_scan = self.allow_scan;
        if let Some(budget) = self.budget {
            query.budget = budget as usize;
        }
        query.fields = self.terms.fields;
        Ok(query)
    }

    fn by_index(&self, index: &Index) -> Result<By> {
        let name = index.name.clone();
        let IndexKind::Values { parts, .. } = &index.kind else {
            // The space refuses it, and says what to do instead.
            return Ok(By::Index { name, equal: Vec::new(), span: None });
        };
        let mut fields = parts.iter();
        let mut next = |text: &String| value(fields.next(), text, index);
        let equal = self.equal.iter().map(&mut next).collect::<Result<Vec<_>>>()?;
        let after = parts.get(equal.len());
        let end =
            |inclusive: &Option<String>, exclusive: &Option<String>| -> Result<Option<Bound>> {
                let (text, inclusive) = match (inclusive, exclusive) {
                    (Some(text), _) => (text, true),
                    (None, Some(text)) => (text, false),
                    (None, None) => return Ok(None),
                };
                let value = value(after, text, index)?;
                Ok(Some(Bound { value, inclusive }))
            };
        let (from, to) = (end(&self.from, &self.above)?, end(&self.to, &self.below)?);
        let span = match (&self.prefix, from, to) {
            (Some(prefix), _, _) => Some(Span::Prefix(prefix.clone())),
            (None, None, None) => None,
            (None, from, to) => Some(Span::Between { from, to }),
        };
        Ok(By::Index { name, equal, span })
    }

    /// The operator must say whose entries; better told with the flag that says it.
    fn needs_owner(&self, declaration: &Declaration, index: &Index, reach: &Reach) -> Result {
        let apart = declaration.ownership.owner().is_some() && index.scope == Scope::Owner;
        if apart && self.terms.owner.is_none() && reach.caller.is_operator() {
            let message = format!("the index {} holds each owner's entries apart", index.name);
            return Err(Failure::invalid(message).hint("Say whose: --owner USER, or --as USER."));
        }
        Ok(())
    }
}

/// A value as the field of an index takes it: text needs no quotes.
fn value(part: Option<&Part>, text: &str, index: &Index) -> Result<Value> {
    let Some(part) = part else {
        return Err(Failure::invalid(format!("the index {} has no more fields", index.name)));
    };
    let parsed = match part.kind {
        ValueKind::Text | ValueKind::Folded | ValueKind::Time => return Ok(text.into()),
        ValueKind::Integer | ValueKind::Number => {
            serde_json::from_str(text).ok().filter(Value::is_number)
        }
        ValueKind::Bool => serde_json::from_str(text).ok().filter(Value::is_boolean),
    };
    parsed.ok_or_else(|| {
        let kind = if part.kind == ValueKind::Bool { "true or false" } else { "a number" };
        Failure::invalid(format!("{} of {} is {kind}, and {text:?} is not", part.field, index.name))
    })
}

fn known(declaration: &Declaration) -> String {
    let names: Vec<&str> = declaration.indexes.iter().map(|index| index.name.as_str()).collect();
    match names.is_empty() {
        true => format!("{} has no indexes.", declaration.name),
        false => format!("The indexes of {} are {}.", declaration.name, names.join(", ")),
    }
}

/// The index of places that is meant: the one that is named, or the only one there is.
pub fn place_index(declaration: &Declaration, named: Option<String>) -> Result<String> {
    if let Some(named) = named {
        return Ok(named);
    }
    let of_places = |index: &&Index| matches!(index.kind, IndexKind::Geohash { .. });
    match &declaration.indexes.iter().filter(of_places).collect::<Vec<_>>()[..] {
        [only] => Ok(only.name.clone()),
        [] => {
            let message = format!("the space {} has no index of places", declaration.name);
            Err(Failure::invalid(message).hint("Declare one, with kind = \"geohash\"."))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|index| index.name.as_str()).collect();
            let message = format!("the space {} has several indexes of places", declaration.name);
            Err(Failure::invalid(message).hint(format!("Name one: {}.", names.join(", "))))
        }
    }
}
