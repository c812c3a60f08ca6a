//! Whether the coordinators of a schema's stores can be coordinators.

use std::collections::BTreeMap;

use keyward_engine::{Error, ErrorKind, StoreUrl};

use super::Place;
use crate::{Sameness, open};

/// Why a coordinator cannot be one, and what would be right.
pub(super) struct Fault {
    pub message: String,
    pub hint: String,
}

impl Fault {
    pub fn into_error(self) -> Error {
        Error::new(ErrorKind::Misplaced, self.message).advise(self.hint)
    }
}

/// What is wrong with the coordinator of a store, if it has one.
pub(super) fn check(places: &BTreeMap<String, Place>, store: &str) -> Option<Fault> {
    let url = places.get(store)?.whole_url().ok().flatten()?;
    match open::check_coordinator(&url) {
        Ok(()) => clash(places, store),
        Err(error) => {
            let message = format!("the coordinator of {store} cannot be one: {}", error.message());
            let hint =
                error.advice().unwrap_or("Name an atomic store, for example embedded:./coord.");
            Some(Fault { message, hint: hint.to_owned() })
        }
    }
}

/// What else is at the place of a store's coordinator: the rows of both would mix.
pub(super) fn clash(places: &BTreeMap<String, Place>, store: &str) -> Option<Fault> {
    let coordinator = places.get(store)?.coordinator()?;
    let is_there = |url: &str| {
        !url.starts_with("memory:") && Sameness::of(url, &coordinator) == Sameness::Same
    };
    let shown = || coordinator.parse::<StoreUrl>().map_or("…".to_owned(), |url| url.to_string());
    for (other, place) in places {
        if other != store && place.coordinator().is_some_and(|url| is_there(&url)) {
            let message =
                format!("the stores {store} and {other} have the same coordinator, {}", shown());
            let hint = "Give each of them a coordinator of its own: their rows would mix.";
            return Some(Fault { message, hint: hint.to_owned() });
        }
        if place.whole_url().ok().flatten().is_some_and(|url| is_there(&url)) {
            let message = format!("the coordinator of {store} is the store {other}, {}", shown());
            let hint =
                "Give it a place of its own, for example embedded:./coord: their rows would mix.";
            return Some(Fault { message, hint: hint.to_owned() });
        }
    }
    None
}
