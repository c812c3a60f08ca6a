//! Coordinators: atomic stores that keep the promises which another store cannot.

use keyward_coordinated::Options;
use keyward_engine::{Error, ErrorKind, Result, StoreUrl};

use super::document_layout;
use super::family::Family;
use super::request::EngineUrl;

/// The option of a URL that names a coordinator.
pub(super) const OPTION: &str = "coordinator";

/// A coordinator, and how it works.
pub(super) struct Coordinator {
    pub engine: EngineUrl,
    pub options: Options,
}

/// Takes the coordinator and its options out of a store's URL.
pub(super) fn take_from(url: &mut StoreUrl, family: Family) -> Result<Option<Coordinator>> {
    if !family.takes_coordinator() {
        if has(url, OPTION) {
            let engine = url.engine();
            let message =
                format!("the {engine} engine needs no coordinator: it keeps its promises itself");
            return Err(invalid(message, "Leave the coordinator out."));
        }
        return Ok(None);
    }
    url.also_takes(&[OPTION]);
    url.also_takes(&Options::NAMES);
    let Some(named) = url.take_decoded(OPTION)? else {
        return match Options::NAMES.into_iter().find(|name| has(url, name)) {
            None => Ok(None),
            Some(name) => {
                let message =
                    format!("{name} is an option of a coordinator, and the URL names none");
                Err(invalid(message, "Add coordinator=embedded:./coord, for example."))
            }
        };
    };
    let engine = read(&named)?;
    let options = Options::take_from(url)?;
    Ok(Some(Coordinator { engine, options }))
}

fn read(named: &str) -> Result<EngineUrl> {
    let url: StoreUrl = named.parse()?;
    let family = Family::of(&url)?;
    if family.takes_coordinator() || has(&url, document_layout::OPTION) {
        let message = format!("{url} cannot be a coordinator: it keeps no promises itself");
        return Err(invalid(message, "Name an atomic store, for example embedded:./coord."));
    }
    if has(&url, OPTION) {
        let message = format!("the coordinator {url} names a coordinator of its own");
        return Err(invalid(message, "Name an atomic store, for example embedded:./coord."));
    }
    Ok(EngineUrl { family, url, is_coordinated: false })
}

/// The coordinator is not there, and should not be created by a mistyped name.
pub(super) fn missing(shown: &str) -> Error {
    let message = format!("there is no coordinator at {shown}");
    Error::new(ErrorKind::Misplaced, message).advise(
        "Check its place. If it is right, open the store once for writing, for example with keyward put: that \
         creates the coordinator and adopts what the store holds.",
    )
}

fn invalid(message: String, hint: &str) -> Error {
    Error::new(ErrorKind::Invalid, message).advise(hint)
}

/// Whether a URL names a coordinator.
pub(super) fn is_named(url: &str) -> bool {
    url.parse().is_ok_and(|url| has(&url, OPTION))
}

/// Whether a URL has an option.
pub(super) fn has(url: &StoreUrl, option: &str) -> bool {
    url.clone().take(option).is_some()
}
