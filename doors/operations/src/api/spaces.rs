//! Which declared spaces a caller reaches.

use keyward::Code;
use keyward::records::Space;
use keyward::rules::admit_space;
use keyward::schema::{Published, Space as Declaration};

use crate::identity::{Identity, Need, Target};
use crate::problem::{Problem, Result};
use crate::services::Services;
use crate::stores::{Served, Stores};

/// A space that a caller's scopes let them read, as the caller reaches it: whatever reads may be asked
/// of it. Only [`reach`] makes one.
#[derive(Debug)]
pub struct Reached<'s> {
    pub served: &'s Served,
    pub space: Space,
}

impl Reached<'_> {
    pub fn name(&self) -> &str {
        &self.space.declaration().name
    }

    /// Refuses what the scopes do not allow in this space. Agents' entries are written as such, so
    /// that they have what makes them entries.
    pub fn require(&self, who: &Identity, need: Need) -> Result<()> {
        who.require(need, &Target::Space { space: self.name(), store: &self.served.name })?;
        if need > Need::Read {
            admit_space(self.name()).map_err(|error| {
                Problem::from(error)
                    .hint("Write them through /v1/agents/namespaces/{namespace}/entries/{key}.")
            })?;
        }
        Ok(())
    }
}

/// A space. One that the scopes do not reach is answered as one that does not exist.
pub fn reach<'s>(who: &Identity, stores: &'s Stores, name: &str) -> Result<Reached<'s>> {
    let found = stores.space(name).filter(|(served, _)| is_reached(who, served, name));
    let Some((served, declaration)) = found else {
        let detail = format!("there is no space called {name:?}");
        return Err(Problem::new(Code::UnknownSpace, detail)
            .hint("GET /v1/spaces lists those that this credential reaches."));
    };
    let space = served.records.space(&declaration.name, who.caller())?;
    Ok(Reached { served, space })
}

/// Every space that a caller reaches, by store and name.
pub fn list<'s>(
    who: &'s Identity,
    stores: &'s Stores,
) -> impl Iterator<Item = (&'s Served, Vec<&'s Declaration>)> {
    stores.iter().map(|served| {
        let spaces = stores.declared(served);
        let spaces = spaces.filter(|space| is_reached(who, served, &space.name));
        (served, spaces.collect())
    })
}

/// The schema, as far as a caller reaches its stores and spaces.
pub fn publish(who: &Identity, services: &Services) -> Published {
    let schema = services.schema();
    let reads = |target: &Target<'_>| who.require(Need::Read, target).is_ok();
    let published = schema.publish(
        |store| reads(&Target::Store(store)),
        |space| {
            let store = schema.space(space).map_or("", |space| &space.store);
            reads(&Target::Space { space, store })
        },
    );
    let default = services.stores().default_store().filter(|store| reads(&Target::Store(store)));
    Published { default_store: default.map(str::to_owned), ..published }
}

fn is_reached(who: &Identity, served: &Served, space: &str) -> bool {
    who.require(Need::Read, &Target::Space { space, store: &served.name }).is_ok()
}
