//! The rule by which every command finds its store. docs/stores.md tells it to users.
//!
//! Everything that resolves a store goes through [`Choice`], so that `put`, `record`, `queue`, `agent`,
//! `sync` and a server in the same directory work on the same one.

use std::fmt;
use std::path::{Path, PathBuf};

use keyward::schema::Schema;
use keyward::{Data, Key, Sameness, agents, records};
use keyward_server::{STORE_DEFAULT, without_schema};

use crate::args::{self, Target};
use crate::failure::{Failure, Result};

/// What says where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `-s`.
    Flag,
    /// `KEYWARD_STORE`.
    Variable,
    /// The line `store` of a config file.
    Config(PathBuf),
    /// The `url` in the schema file.
    Schema(PathBuf),
    /// Nothing does.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("-s"),
            Self::Variable => f.write_str("KEYWARD_STORE"),
            Self::Config(file) | Self::Schema(file) => write!(f, "{}", file.display()),
            Self::Default => f.write_str("the default"),
        }
    }
}

/// A store that was named, by its URL or by its name in the schema.
#[derive(Debug, Clone)]
pub struct Named {
    pub text: String,
    pub source: Source,
}

impl Named {
    /// Whether it is a name, and not a URL.
    pub fn is_name(&self) -> bool {
        is_name(&self.text)
    }
}

fn is_name(text: &str) -> bool {
    !text.contains(':')
}

/// The stores of this machine that a command can use, and the one that it uses if it names no space.
#[derive(Debug)]
pub struct Choice {
    /// The stores, each at its place. Without a schema it is one, called `main`.
    pub data: Data,
    /// The schema file that declares them.
    pub schema: Option<PathBuf>,
    /// What says where the store is that is used.
    pub source: Source,
    /// All that the schema declares, if `-s` left out some of its stores.
    narrowed: Option<Schema>,
    default: Default,
}

#[derive(Debug)]
enum Default {
    Store(String),
    /// There are several stores, and nothing chooses one.
    Unnamed,
    /// There are several stores, and this place is none of theirs.
    UnknownPlace(Named),
    /// The place is outside of a schema that declares several stores: its spaces are out of reach.
    Outside {
        store: String,
        failure: Outside,
        /// What the schema declares, and which of its stores the place may be all the same.
        possible: Option<(Data, String)>,
    },
}

/// A place that is none of the stores of a schema, in words.
#[derive(Debug)]
struct Outside {
    message: String,
    hint: String,
}

impl Choice {
    /// The stores in reach, by the rule.
    pub fn of(target: &Target) -> Result<Self> {
        match target.schema_file_if_any()? {
            Some(file) => Self::declared(Data::load(&file)?, &file, target),
            None => Self::undeclared(target),
        }
    }

    /// One store, without a schema.
    fn undeclared(target: &Target) -> Result<Self> {
        let named = match target.named_store() {
            Some(named) if named.is_name() => return Err(no_such_name(&named)),
            Some(named) => named,
            None => fallback(target)?,
        };
        Self::at(named)
    }

    fn at(named: Named) -> Result<Self> {
        let data = without_schema(&named.text)?;
        let store = data.default_store().unwrap_or_default().to_owned();
        let default = Default::Store(store);
        Ok(Self { data, schema: None, source: named.source, narrowed: None, default })
    }

    /// The stores that a schema file declares.
    pub fn declared(data: Data, file: &Path, target: &Target) -> Result<Self> {
        match data.schema().stores.len() {
            0 | 1 => Self::single(data, file, target),
            _ => Self::several(data, file, target),
        }
    }

    /// The only store of a schema. What `-s` and the variable name is where it is.
    fn single(data: Data, file: &Path, target: &Target) -> Result<Self> {
        let declared = || Source::Schema(file.to_owned());
        let (data, named) = match target.named_store() {
            Some(named) if named.is_name() => (data.with_default(&named.text)?, None),
            named => (data, named),
        };
        let Some(store) = data.default_store().map(str::to_owned) else {
            return Ok(Self::new(data, file, declared(), Default::Unnamed));
        };
        let named = match named {
            None if data.url(&store).is_err() => Some(fallback(target)?),
            named => named,
        };
        let (data, source) = match named {
            Some(named) => (data.at(&store, named.text)?, named.source),
            None => (data, declared()),
        };
        Ok(Self::new(data, file, source, Default::Store(store)))
    }

    /// One of several stores, by its name or its place. For one command, `-s` means that store alone.
    fn several(data: Data, file: &Path, target: &Target) -> Result<Self> {
        let named = match target.named_store() {
            Some(named) => Some(named),
            None => of_config(target)?,
        };
        // Where a store is that is called by its name, the schema says.
        let placed_by = match &named {
            Some(named) if !named.is_name() || matches!(named.source, Source::Config(_)) => {
                named.source.clone()
            }
            _ => Source::Schema(file.to_owned()),
        };
        // A place is the store that is there.
        let named = named.map(|named| match at_place(&data, &named.text, Sameness::Same) {
            Some(text) => Named { text, ..named },
            None => named,
        });
        let whole = Schema::clone(data.schema());
        let (data, place) = match named {
            Some(Named { text, source: Source::Flag }) if is_name(&text) => {
                (data.only(&text)?, None)
            }
            Some(Named { text, .. }) if is_name(&text) => (data.with_default(&text)?, None),
            place => (data, place),
        };
        let stores = data.schema().stores.iter().filter(|store| store.url.is_none());
        let open: Vec<String> = stores.map(|store| store.name.clone()).collect();
        let (data, source) = match (open.as_slice(), place) {
            ([one, other, ..], _) => {
                let message = format!("the schema says neither where {one} nor where {other} is");
                return Err(Failure::invalid(message).hint("Give each store but one a url."));
            }
            ([], Some(place)) => return Self::outside(data, file, place),
            ([], None) => (data, placed_by),
            ([open], place) => {
                let place = place.map_or_else(|| fallback(target), Ok)?;
                let data = data.at(open, &*place.text)?;
                // Another one was chosen by its name or place.
                match data.has_default() && data.default_store() != Some(open) {
                    true => (data, placed_by),
                    false => (data.with_default(open)?, place.source),
                }
            }
        };
        refuse_shared_places(&data)?;
        let default = data.default_store().map(str::to_owned);
        let default = default.map_or(Default::Unnamed, Default::Store);
        let narrowed = (whole.stores.len() > data.schema().stores.len()).then_some(whole);
        Ok(Self { narrowed, ..Self::new(data, file, source, default) })
    }

    /// A place that is none of the stores, all of which the schema places.
    fn outside(data: Data, file: &Path, named: Named) -> Result<Self> {
        if named.source != Source::Flag {
            let source = Source::Schema(file.to_owned());
            return Ok(Self::new(data, file, source, Default::UnknownPlace(named)));
        }
        let failure = outside(&data, file, &named);
        let possible = at_place(&data, &named.text, Sameness::Possible);
        let possible = possible.map(|store| (data, store));
        let chosen = Self::at(named)?;
        let store = chosen.store()?.to_owned();
        Ok(Self { default: Default::Outside { store, failure, possible }, ..chosen })
    }

    fn new(data: Data, file: &Path, source: Source, default: Default) -> Self {
        Self { data, schema: Some(file.to_owned()), source, narrowed: None, default }
    }

    /// The store of commands that name no space.
    pub fn store(&self) -> Result<&str> {
        match &self.default {
            Default::Store(store) | Default::Outside { store, .. } => Ok(store),
            Default::UnknownPlace(named) => {
                let file = self.schema.as_deref().unwrap_or(Path::new(""));
                let Outside { message, hint } = outside(&self.data, file, named);
                Err(Failure::invalid(message).hint(hint))
            }
            Default::Unnamed => {
                let file = self.schema.as_deref().unwrap_or(Path::new(""));
                let message =
                    format!("{} declares several stores: {}", file.display(), listed(&self.data));
                Err(Failure::invalid(message).hint(how_to_name(&self.data)))
            }
        }
    }

    /// The declared store that the place may be, which does not show it: two addresses can be those of one
    /// database. Plain writes keep to its rules, since one that is refused by mistake can be repeated with
    /// `--raw`, and one that is not leaves indexes stale.
    pub fn possible_store(&self) -> Option<(&Data, &str)> {
        match &self.default {
            Default::Outside { possible: Some((data, store)), .. } => Some((data, store)),
            _ => None,
        }
    }

    /// Where that store is.
    pub fn url(&self) -> Result<String> {
        Ok(self.data.url(self.store()?)?)
    }

    /// The store that the schema has the locks below a root in, if it says so. Refused if `-s` leaves it
    /// out: the same locks in another store would hold nobody back.
    pub fn lock_store(&self, root: &Key) -> Result<Option<&str>> {
        let schema = self.narrowed.as_ref().unwrap_or_else(|| self.data.schema());
        let tree = schema.locks.iter().find(|tree| tree.has_root(root));
        tree.map(|tree| self.in_reach(&tree.store, &format!("the locks of {root}"))).transpose()
    }

    /// The store of agents' entries: where the schema has them, else the one of other commands. Refused if
    /// `-s` leaves out the former, in which everybody else looks for them.
    pub fn agents_store(&self) -> Result<&str> {
        let schema = self.narrowed.as_ref().unwrap_or_else(|| self.data.schema());
        match schema.space(agents::SPACE) {
            Some(space) => self.in_reach(&space.store, "agents' entries"),
            None => self.store(),
        }
    }

    fn in_reach<'s>(&'s self, store: &str, what: &str) -> Result<&'s str> {
        let mut stores = self.data.schema().stores.iter();
        match stores.find(|one| one.name == store) {
            Some(found) => Ok(&found.name),
            None => Err(left_out(store, what)),
        }
    }

    /// Refuses a place that is none of several stores, for those who would use another one in its stead.
    pub fn refuse_unknown_place(&self) -> Result {
        match &self.default {
            Default::UnknownPlace(_) => self.store().map(drop),
            _ => Ok(()),
        }
    }

    /// The stores, for a command that needs what the schema declares. Refused if `-s` is a place outside
    /// of the schema, or if what is declared does not fit the engine of a store.
    pub fn into_data(self) -> Result<Data> {
        if let Default::Outside { failure: Outside { message, hint }, .. } = self.default {
            return Err(Failure::invalid(message).hint(hint));
        }
        let misfits = self.data.check()?.errors();
        if misfits.is_empty() { Ok(self.data) } else { Err(misfits.into()) }
    }
}

/// How stores of a schema are found by the name that settings give.
pub type Find = for<'d> fn(&'d Data, Option<&str>) -> Result<&'d str, records::Error>;

/// The stores, and which of them a registry or a workspace is in whose settings name one or none. A
/// store that was named for this command comes before them.
pub async fn of_system(target: &Target, named: Option<&str>, find: Find) -> Result<(Data, String)> {
    if let Some(server) = target.server()? {
        let data = target.data().await?;
        let store = match server.store() {
            Some(store) => store.to_owned(),
            None => find(&data, named)?.to_owned(),
        };
        return Ok((data, store));
    }
    let choice = Choice::of(target)?;
    let store = match named.filter(|_| !target.store_is_asked_for()) {
        Some(named) => find(&choice.data, Some(named))?.to_owned(),
        None => choice.store()?.to_owned(),
    };
    Ok((checked(choice)?, store))
}

/// The stores, and which of them has agents' entries: the one that declares their space, if one does.
pub async fn of_agents(target: &Target) -> Result<(Data, String)> {
    if let Some(server) = target.server()? {
        let data = target.data().await?;
        let declared = data.schema().space(agents::SPACE);
        let store = match (server.store(), declared) {
            (Some(store), Some(space)) if store != space.store => {
                return Err(left_out(&space.store, "agents' entries"));
            }
            (Some(store), _) => store.to_owned(),
            (None, _) => data.agents_store()?.to_owned(),
        };
        return Ok((data, store));
    }
    let choice = Choice::of(target)?;
    let store = choice.agents_store()?.to_owned();
    Ok((checked(choice)?, store))
}

/// The stores of a command that can do without a schema.
fn checked(choice: Choice) -> Result<Data> {
    match choice.schema {
        Some(_) => choice.into_data(),
        None => Ok(choice.data),
    }
}

/// Where the store is of which neither the command nor the environment says it.
pub fn fallback(target: &Target) -> Result<Named> {
    let default = || Named { text: STORE_DEFAULT.to_owned(), source: Source::Default };
    Ok(of_config(target)?.filter(|named| !named.is_name()).unwrap_or_else(default))
}

fn of_config(target: &Target) -> Result<Option<Named>> {
    let found = target.config_store()?;
    Ok(found.map(|(text, file)| Named { text, source: Source::Config(file) }))
}

/// What the schema has in a store that `-s` leaves out.
pub fn left_out(store: &str, what: &str) -> Failure {
    Failure::invalid(format!("the schema has {what} in the store {store}, which -s leaves out"))
        .hint(format!("Write -s {store}, or leave out -s."))
}

/// Two stores at one place would overwrite each other's entries.
fn refuse_shared_places(data: &Data) -> Result {
    for (at, store) in data.schema().stores.iter().enumerate() {
        let Ok(place) = data.url(&store.name) else { continue };
        let mut others = data.schema().stores[at + 1..].iter();
        let is_there = |url: String| {
            !url.starts_with("memory:") && Sameness::of(&url, &place) == Sameness::Same
        };
        if let Some(other) = others.find(|other| data.url(&other.name).is_ok_and(is_there)) {
            let (one, other) = (&store.name, &other.name);
            let place = args::shown(&place);
            let message = format!("the stores {one} and {other} are at the same place, {place}");
            return Err(Failure::invalid(message).hint("Give each of them a place of its own."));
        }
    }
    Ok(())
}

fn no_such_name(named: &Named) -> Failure {
    let Named { text, source } = named;
    let message = format!(
        "{source} {text:?} is not a store URL, and there is no schema file that declares a store of \
         that name"
    );
    Failure::invalid(message).hint("Write a URL, for example embedded:./data.")
}

fn outside(data: &Data, file: &Path, named: &Named) -> Outside {
    let place = args::shown(&named.text);
    let (source, file) = (&named.source, file.display());
    Outside {
        message: format!(
            "{source} names {place}, which is none of the stores that {file} declares: {}",
            listed(data)
        ),
        hint: how_to_name(data),
    }
}

fn how_to_name(data: &Data) -> String {
    let first = data.schema().stores.first().map_or("main", |store| &*store.name);
    format!("Name the store that you mean, as in -s {first}.")
}

/// The stores, for people.
fn listed(data: &Data) -> String {
    let stores = data.schema().stores.iter();
    let named = stores.map(|store| {
        let place = data.url(&store.name).map_or_else(|_| "…".to_owned(), |url| args::shown(&url));
        format!("{} ({place})", store.name)
    });
    named.collect::<Vec<_>>().join(", ")
}

/// The first store that a place is, as surely as that.
fn at_place(data: &Data, place: &str, sameness: Sameness) -> Option<String> {
    let is_there =
        |name: &str| data.url(name).is_ok_and(|url| Sameness::of(&url, place) == sameness);
    let store = data.schema().stores.iter().find(|store| is_there(&store.name))?;
    Some(store.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_that_is_meant_is_found_however_its_url_is_spelled() {
        let schema = "[stores.near]\nurl = 'embedded:./near'\n\
                      [stores.eu]\nurl = 'postgres://eu.example/app?store=x'\n\
                      [stores.us]\nurl = 'postgres://us.example/app?store=x'\n";
        let data = Data::new(Schema::parse(schema, "schema.toml").unwrap());
        for (url, same, possible) in [
            ("embedded:near", Some("near"), None),
            ("postgresql://me@US.example:5432/app?store=x&pool_max=2", Some("us"), Some("eu")),
            ("postgres://10.0.0.7/app?store=x", None, Some("eu")),
            ("postgres://us.example/app?store=y", None, None),
            ("memory:", None, None),
        ] {
            assert_eq!(at_place(&data, url, Sameness::Same).as_deref(), same, "{url}");
            assert_eq!(at_place(&data, url, Sameness::Possible).as_deref(), possible, "{url}");
        }
    }
}
