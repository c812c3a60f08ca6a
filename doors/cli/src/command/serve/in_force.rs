//! What `--check` shows.

use std::collections::BTreeMap;

use keyward::{Data, agreements, registry};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::settings::Settings;

/// What is in force.
#[derive(Serialize)]
pub struct InForce {
    /// Where each store is, without passwords.
    pub stores: BTreeMap<String, String>,
    pub server: Settings,
    /// What says where secrets are, and not what they are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub registries: BTreeMap<String, registry::Settings>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agreements: BTreeMap<String, agreements::Settings>,
}

impl InForce {
    /// Shows it as a config file would say it.
    pub fn write(&self, output: &mut Output) -> Result {
        if output.json() {
            output.write_json(self)?;
        } else {
            let text = toml::to_string(self)
                .map_err(|error| Failure::invalid(format!("this cannot be shown: {error}")))?;
            write!(output, "{text}")?;
        }
        output.flush()
    }
}

/// Where each store is.
pub fn places(data: &Data) -> BTreeMap<String, String> {
    let stores = data.schema().stores.iter();
    stores.map(|store| (store.name.clone(), place(data, &store.name))).collect()
}

/// Where a store is.
pub fn place(data: &Data, store: &str) -> String {
    let place = data.url(store).unwrap_or_default();
    // What stands between :// and @ may be a password.
    match place.split_once("://").zip(place.rsplit_once('@')) {
        Some(((engine, _), (_, place))) => format!("{engine}://…@{place}"),
        None => place,
    }
}
