//! Stores, and which of them a space means.

use super::report::{Report, Span};
use super::table::{Table, Text};
use crate::StoreDeclaration;
use crate::nearest::{listed, nearest};
use crate::url::secrets;

pub(super) struct Stores {
    pub declared: Vec<StoreDeclaration>,
    /// Where the name of each store stands.
    pub places: Vec<Span>,
}

impl Stores {
    pub fn read(tables: Vec<(Text<'_>, Table<'_, '_>)>, report: &mut Report<'_>) -> Self {
        let mut stores = Self { declared: Vec::new(), places: Vec::new() };
        for (name, table) in tables {
            table.only(&["url", "coordinator", "description"], report);
            let url = table.text("url", "url = \"embedded:./data\"", report);
            if let Some(url) = &url {
                check_url(url, report);
            }
            let coordinator =
                table.text("coordinator", "coordinator = \"embedded:./coord\"", report);
            if let Some(coordinator) = &coordinator {
                check_url(coordinator, report);
                check_named_once(url.as_ref(), coordinator, report);
            }
            let description = table.text("description", "description = \"…\"", report);
            stores.declared.push(StoreDeclaration {
                name: name.text.to_owned(),
                url: url.map(|url| url.text.to_owned()),
                coordinator: coordinator.map(|coordinator| coordinator.text.to_owned()),
                description: description.map(|description| description.text.to_owned()),
            });
            stores.places.push(name.at);
        }
        stores
    }

    /// The store that a space or lock tree lives in: the one it names, or the only one.
    pub fn chosen(&self, table: &Table<'_, '_>, report: &mut Report<'_>) -> Option<String> {
        let names = || self.declared.iter().map(|store| store.name.as_str());
        if table.item("store").is_some() {
            let named = table.text("store", "store = \"app\"", report)?;
            if names().any(|name| name == named.text) {
                return Some(named.text.to_owned());
            }
            let hint = match (nearest(named.text, names()), self.declared.is_empty()) {
                (Some(name), _) => format!("did you mean {name:?}?"),
                (None, true) => format!("declare it: [stores.{}]", named.text),
                (None, false) => format!("there are {}; or declare it", listed(names())),
            };
            let message = format!("there is no store {:?}", named.text);
            report.error("unknown-store", named.at, message, hint);
            return None;
        }
        match self.declared.as_slice() {
            [only] => return Some(only.name.clone()),
            [] => table.missing("store", "declare a store: [stores.app]", report),
            _ => {
                let hint = format!("there are several stores: {}", listed(names()));
                table.missing("store", &hint, report);
            }
        }
        None
    }
}

/// The shape of a URL. Which engines there are, and what each makes of the rest, is known to those
/// who open stores.
fn check_url(url: &Text<'_>, report: &mut Report<'_>) {
    let engine = url.text.split_once(':').map(|(engine, _)| engine);
    let named = engine.is_some_and(|engine| {
        engine.starts_with(|c: char| c.is_ascii_lowercase())
            && engine
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-".contains(c))
    });
    if !named {
        let message = format!("{:?} is not a store URL", url.text);
        let hint =
            "write an engine, a colon and a place: embedded:./data, postgres://host/db or memory:";
        report.error("store-url", url.at.clone(), message, hint);
        return;
    }
    if let Some(secret) = secrets(url.text).first() {
        let at = url.part(secret.start, secret.len(), report);
        let message = "a password stands in the schema file, where everybody reads it";
        let hint = "leave url out and give it when the store is opened";
        report.warning("url-password", at, message, hint);
    }
}

/// Refuses a coordinator that is named a second time, as an option of the URL.
fn check_named_once(url: Option<&Text<'_>>, coordinator: &Text<'_>, report: &mut Report<'_>) {
    let options = url.and_then(|url| url.text.split_once('?')).map_or("", |(_, options)| options);
    if options.split('&').any(|option| option.starts_with("coordinator=")) {
        let message = "the url names a coordinator too";
        let hint = "keep one of the two";
        report.error("unexpected-key", coordinator.at.clone(), message, hint);
    }
}
