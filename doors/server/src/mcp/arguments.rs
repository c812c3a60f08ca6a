//! The arguments of a call, as the client wrote them.
//!
//! What is to be stored is passed on as text: the protocol's library reads arguments into values that
//! keep neither every digit of a number nor the order of names.

use std::collections::BTreeMap;

use axum::body::Bytes;
use keyward_operations::input::Input;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::problem::{Problem, Result};

/// The whole message, as it came.
#[derive(Debug, Clone)]
pub(super) struct Sent(pub Bytes);

#[derive(Deserialize)]
struct Envelope<'b> {
    #[serde(borrow)]
    params: Params<'b>,
}

#[derive(Deserialize)]
struct Params<'b> {
    #[serde(borrow)]
    arguments: &'b RawValue,
}

/// Named JSON.
#[derive(Debug, Clone, Default)]
pub(super) struct Arguments(BTreeMap<String, Box<RawValue>>);

impl Arguments {
    /// The arguments of a message; those that were read from it, if it is not at hand.
    pub fn new(sent: Option<&Sent>, read: Option<&JsonObject>) -> Self {
        let raw = sent.and_then(|sent| {
            let envelope: Envelope<'_> = serde_json::from_slice(&sent.0).ok()?;
            serde_json::from_str(envelope.params.arguments.get()).ok()
        });
        let again = || {
            let text = serde_json::to_string(read?).ok()?;
            serde_json::from_str(&text).ok()
        };
        Self(raw.or_else(again).unwrap_or_default())
    }

    /// Arguments as they stand in a message, if they are an object; none are as good as an empty one.
    pub fn of(object: Option<&RawValue>) -> Option<Self> {
        let Some(object) = object else { return Some(Self::default()) };
        serde_json::from_str(object.get()).ok().map(Self)
    }

    /// Takes an argument that is a text, if it is there.
    pub fn take_text(&mut self, name: &str) -> Result<Option<String>> {
        self.take(name)
    }

    /// Takes an argument out of the others, if it is there; null is as good as nothing.
    pub fn take<T: for<'b> Deserialize<'b>>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(raw) = self.0.remove(name) else { return Ok(None) };
        serde_json::from_str(raw.get()).map_err(|error| {
            Problem::invalid(format!("the argument {name} cannot be read: {error}"))
                .hint("Look at the tool's input schema, and call it again; nothing was done.")
        })
    }

    /// Takes an argument as it was written, if it is there.
    pub fn take_raw(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.0.remove(name).filter(|raw| raw.get() != "null")
    }

    /// Takes an argument that may be any JSON, null as well, as it was written.
    pub fn take_json(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.0.remove(name)
    }

    /// Gives an argument another value, a number.
    pub fn set_number(&mut self, name: &str, number: usize) {
        // Numbers always serialize.
        if let Ok(raw) = serde_json::value::to_raw_value(&number) {
            self.0.insert(name.to_owned(), raw);
        }
    }

    /// The arguments as one text, to be read with [`read`]. Those that are null are left out.
    pub fn text(&self) -> String {
        let given: BTreeMap<_, _> = self.0.iter().filter(|(_, raw)| raw.get() != "null").collect();
        // Texts and JSON always serialize.
        serde_json::to_string(&given).unwrap_or_default()
    }

    /// The arguments as the fields of an operation. Those that are null are left out.
    pub fn request<T: DeserializeOwned>(&self) -> Result<T> {
        let text = self.text();
        let mut input = Input::default();
        input.push_members(text.as_bytes())?;
        input.read().map_err(|problem| {
            problem.hint("Look at the tool's input schema, and call it again; nothing was done.")
        })
    }

    /// Refuses arguments that nothing took.
    pub fn finish(self) -> Result<()> {
        self.refuse_all_but(&[])
    }

    /// Refuses arguments that are left, but for some.
    pub fn refuse_all_but(&self, known: &[&str]) -> Result<()> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Problem::invalid(format!("there is no argument called {name:?}"))
                .hint("Look at the tool's input schema, and call it again; nothing was done.")),
        }
    }
}

/// Reads arguments as something that is understood here.
pub(super) fn read<'b, T: Deserialize<'b>>(text: &'b str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        // Where in a text that the client never saw helps nobody.
        let told = error.to_string();
        let told = told.split(" at line ").next().unwrap_or_default();
        Problem::invalid(format!("the arguments cannot be read: {told}"))
            .hint("Look at the tool's input schema, and call it again; nothing was done.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &'static str) -> Arguments {
        Arguments::new(Some(&Sent(Bytes::from_static(text.as_bytes()))), None)
    }

    #[test]
    fn digits_and_the_order_of_names_stay_as_they_were_written() {
        let mut arguments = sent(
            r#"{"params":{"name":"x","arguments":{"value":{"b":1.10,"a":123456789012345678901}}}}"#,
        );
        let value = arguments.take_raw("value").unwrap();
        assert_eq!(value.get(), r#"{"b":1.10,"a":123456789012345678901}"#);
        assert!(arguments.finish().is_ok());
    }

    #[test]
    fn what_nobody_takes_is_refused_and_null_is_nothing() {
        let mut arguments = sent(r#"{"params":{"arguments":{"a":null,"b":"x","c":1}}}"#);
        assert_eq!(arguments.text(), r#"{"b":"x","c":1}"#);
        assert_eq!(arguments.take_text("a").unwrap(), None);
        assert_eq!(arguments.take_text("b").unwrap().as_deref(), Some("x"));
        assert!(arguments.clone().take_text("c").is_err());
        assert!(arguments.finish().is_err());
    }

    #[test]
    fn without_the_message_the_arguments_that_were_read_are_taken() {
        let read = serde_json::json!({"a": 1}).as_object().cloned();
        let mut arguments = Arguments::new(None, read.as_ref());
        assert_eq!(arguments.take::<u8>("a").unwrap(), Some(1));
        assert!(Arguments::new(None, None).finish().is_ok());
    }
}
