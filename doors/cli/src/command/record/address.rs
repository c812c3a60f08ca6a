//! Which record: a space, and values for the variables of its key.

use clap::Args;
use keyward::records::{self, Caller};
use keyward::schema::Space as Declaration;
use keyward::{Bindings, SegmentType, SegmentValue};

use super::reach::Reach;
use crate::failure::{Failure, Result};
use crate::input::Input;

/// Which record.
#[derive(Debug, Args)]
pub struct Address {
    /// The space, as the schema calls it
    pub space: String,
    /// The variables of the space's key, for example note=n1
    #[arg(value_name = "VAR=VALUE")]
    pub values: Vec<String>,
}

/// Which record, and a value for it.
#[derive(Debug, Args)]
pub struct AddressAndValue {
    /// The space, as the schema calls it
    space: String,
    /// The variables of the space's key (note=n1), and the JSON: as it is, @FILE, or - for standard
    /// input
    #[arg(value_name = "VAR=VALUE... JSON", required = true, allow_negative_numbers = true)]
    rest: Vec<String>,
}

impl AddressAndValue {
    /// The two apart. A value that is no JSON is told here, before a store is made for it.
    pub fn split(self) -> Result<(Address, Input)> {
        let (values, others): (Vec<_>, Vec<_>) =
            self.rest.into_iter().partition(|text| is_assignment(text));
        match &others[..] {
            [json] => Ok((Address { space: self.space, values }, Input::new(json)?)),
            [] => Err(Failure::invalid("no value was given")
                .hint("Write JSON after the variables, or @FILE, or - to read standard input.")),
            [one, other, ..] => {
                let failure = Failure::invalid(format!("{one} and {other}: one value is enough"));
                Err(failure.hint(
                    "Put single quotes around JSON, and write variables as note=n1, without spaces.",
                ))
            }
        }
    }
}

/// Whether a text is `NAME=…`, which no JSON is.
pub fn is_assignment(text: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let name = text.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| name.starts_with(char::is_alphabetic) && name.chars().all(in_name))
}

impl Address {
    /// The variables' values. Whatever makes no key is told before a store is opened for it.
    pub fn bindings(&self, reach: &Reach) -> Result<Bindings> {
        let declaration = reach.declaration(&self.space)?;
        let values = bindings(declaration, &self.values)?;
        let owned = with_owner(declaration, &reach.caller, values.clone());
        declaration.key.build(&owned).map_err(|error| {
            Failure::from(records::Error::from(error))
                .hint(format!("The keys of {} are {}.", declaration.name, declaration.key))
        })?;
        Ok(values)
    }
}

fn with_owner(declaration: &Declaration, caller: &Caller, values: Bindings) -> Bindings {
    match (declaration.ownership.owner(), caller.user_id()) {
        (Some(owner), Some(user)) if values.get(owner).is_none() => values.with(owner, user),
        _ => values,
    }
}

/// Reads `VAR=VALUE` arguments; some variables may be missing.
pub fn bindings(declaration: &Declaration, arguments: &[String]) -> Result<Bindings> {
    let keys = format!("The keys of {} are {}.", declaration.name, declaration.key);
    let wrong = |message: String| Failure::invalid(message).hint(keys.clone());
    let mut values = Bindings::new();
    for argument in arguments {
        let Some((name, text)) = argument.split_once('=') else {
            return Err(wrong(format!("{argument} is no VAR=VALUE, such as note=n1")));
        };
        let Some(variable) = declaration.key.variables().find(|variable| variable.name == name)
        else {
            return Err(wrong(format!("{} has no variable called {name:?}", declaration.name)));
        };
        if values.get(name).is_some() {
            return Err(wrong(format!("{name} is given twice")));
        }
        let value = match variable.kind {
            SegmentType::Text => Some(SegmentValue::Text(text.to_owned())),
            SegmentType::U64 => text.parse().ok().map(SegmentValue::U64),
            SegmentType::Time => text.parse().ok().map(SegmentValue::Time),
        };
        let Some(value) = value else {
            let kind = variable.kind;
            return Err(wrong(format!("{name} takes {kind}, and {text:?} is none")));
        };
        values = values.with(name, value);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use keyward::schema::Schema;

    use super::*;

    #[test]
    fn no_json_is_taken_for_a_variable() {
        for json in [r#"{"a":"b=c"}"#, "\"a=b\"", "[1]", "-5", "true", "-", "@a=b.json"] {
            assert!(!is_assignment(json), "{json}");
        }
        for variable in ["note=n1", "note=", "at=2026-01-01T00:00:00Z", "note=a=b", "n-1={}"] {
            assert!(is_assignment(variable), "{variable}");
        }
    }

    #[test]
    fn variables_are_read_as_their_type_says() {
        let schema =
            "[stores.s]\n[spaces.log]\nkey = 'log:{app}:{at:time}:{n:u64}'\nownership = 'shared'\n";
        let schema = Schema::parse(schema, "s.toml").unwrap();
        let read = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            bindings(&schema.spaces[0], &arguments)
        };
        let values = read(&["app=a:b", "n=7", "at=2026-01-01T00:00:00Z"]).unwrap();
        assert_eq!(
            schema.spaces[0].key.build(&values).unwrap().to_string(),
            "log:a%3Ab:20260101T000000.000000000Z:00000000000000000007"
        );
        for wrong in [&["n=-1"][..], &["at=now"], &["ap=1"], &["app"], &["n=1", "n=2"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
