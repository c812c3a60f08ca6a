//! The command line: what is common to all commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use keyward::schema::Schema;
use keyward::{Code, Data, Store, StoreUrl};

use crate::command::Command;
use crate::config::{Agreements, Registries};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::served::Served;
use crate::settings::Settings;
use crate::store_choice::{Choice, Named, Source};
use crate::{config, output};

/// The data layer over key-value stores.
///
/// A store is named by a URL: embedded:DIRECTORY is a store on this machine that several processes
/// may share; memory: lives as long as one command, for trying things. Others are in a database: postgres://,
/// couchdb://, dynamodb://, firestore://, cloudflare-kv:// and forge-kvs://.
///
/// Every command finds its store by one rule; the first of these that says it, decides: (1) -s, (2)
/// KEYWARD_STORE, (3) the url of the schema file's only store, (4) the config file, with a line such as
/// store = "embedded:./data", (5) embedded:./keyward-data. keyward stats shows which store it is, and why.
/// The config file is --config FILE (or KEYWARD_CONFIG), else ./keyward.toml, else
/// ~/.config/keyward/config.toml.
///
/// A schema file declares what stores hold: keyward schema checks it, keyward record reads and
/// writes what it declares. It is --schema FILE, else KEYWARD_SCHEMA, else what the config file says
/// (schema = "FILE"), else ./keyward.schema.toml. If it declares several stores, records are in the
/// store of their space; for the rest, -s NAME names one of them, and the default is the one called main.
///
/// With --server URL, or KEYWARD_SERVER, commands work on the stores of a server instead: -s then names
/// one of them, and the schema is the server's. The API key comes from KEYWARD_KEY or --key-file.
///
/// Keys are segments with colons between them (user:7:name); values are JSON. A prefix such as
/// user:7 means everything below it: user:7:name, but neither user:7 itself nor user:70.
#[derive(Debug, Parser)]
#[command(name = "keyward", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    shape: Shape,
    #[command(subcommand)]
    pub command: Command,
}

/// Which store.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Target {
    /// The store: a URL such as embedded:./data, or a name from the schema file
    #[arg(
        short,
        long,
        global = true,
        value_name = "URL|NAME",
        env = "KEYWARD_STORE",
        hide_env_values = true
    )]
    store: Option<String>,
    /// The file that names the store when neither -s nor KEYWARD_STORE does, and says how to serve
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "KEYWARD_CONFIG",
        hide_env_values = true
    )]
    config: Option<PathBuf>,
    /// The schema file [default: ./keyward.schema.toml]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "KEYWARD_SCHEMA",
        hide_env_values = true
    )]
    schema: Option<PathBuf>,
    /// A server to work on, for example http://127.0.0.1:7480; -s then names one of its stores
    #[arg(long, global = true, value_name = "URL", env = "KEYWARD_SERVER", hide_env_values = true)]
    server: Option<String>,
    /// The file with the API key for the server; without it, the key is in KEYWARD_KEY
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "KEYWARD_KEY_FILE",
        hide_env_values = true
    )]
    key_file: Option<PathBuf>,
    /// What of this was said for this command, not for all of them.
    #[arg(skip)]
    asked_for: AskedFor,
}

/// What was said for this command, not for all of them.
#[derive(Debug, Clone, Copy, Default)]
struct AskedFor {
    store: bool,
    schema: bool,
    server: bool,
}

/// In which form.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Shape {
    /// Write JSON: results on standard output, errors on standard error
    #[arg(long, global = true, conflicts_with = "text")]
    json: bool,
    /// Write text for people, also when a program reads it (scan, watch, stats and record write JSON then)
    #[arg(long, global = true)]
    text: bool,
}

impl Target {
    /// The server that is meant, if one is. A URL after -s means that store, whatever the environment
    /// says.
    pub fn server(&self) -> Result<Option<Served>> {
        let Some(server) = self.server.as_deref().filter(|server| !server.is_empty()) else {
            return Ok(None);
        };
        let store = self.store.as_deref().filter(|_| self.asked_for.store);
        match store {
            Some(url) if url.contains(':') && !self.asked_for.server => return Ok(None),
            Some(url) if url.contains(':') => {
                let message = "with --server, -s is the name of one of its stores, not a URL";
                return Err(Failure::invalid(message)
                    .hint("Write for example -s main, or leave out one of the two."));
            }
            _ => {}
        }
        Ok(Some(Served::new(server, store, self.key_file.clone())?))
    }

    /// Refuses what can only be done where the store is.
    pub fn refuse_server(&self, what: &str, hint: &str) -> Result {
        match self.server()? {
            None => Ok(()),
            Some(server) => {
                let message = format!("{what} cannot be done through {}", server.name());
                Err(Failure::new(Code::Unsupported, message).hint(hint))
            }
        }
    }

    /// The schema of the server, if that is the one that is meant.
    pub async fn served_schema(&self) -> Result<Option<Schema>> {
        match self.server()? {
            Some(server) if !self.asked_for.schema => Ok(Some(server.schema().await?)),
            _ => Ok(None),
        }
    }

    /// The URL of a store that an argument names: as it is, or a store of the server by its name.
    pub fn named(&self, store: String) -> Result<String> {
        match self.server()? {
            Some(server) if !store.contains(':') => server.store_url(&store),
            _ => Ok(store),
        }
    }

    /// The URL of the store that a command uses if it names no space. By the rule of
    /// [`store_choice`](crate::store_choice), or one of a server.
    pub fn url(&self) -> Result<String> {
        if let Some(server) = self.server()? {
            return server.url();
        }
        match self.named_store() {
            // Needs no schema, also where that is broken.
            Some(named) if named.source == Source::Flag && !named.is_name() => Ok(named.text),
            _ => Choice::of(self)?.url(),
        }
    }

    /// The store that `-s` or `KEYWARD_STORE` names. An empty variable is none.
    pub fn named_store(&self) -> Option<Named> {
        let text = self.store.clone().filter(|store| !store.is_empty())?;
        let source = if self.asked_for.store { Source::Flag } else { Source::Variable };
        Some(Named { text, source })
    }

    /// The store that the config file names, if it does, and the file.
    pub fn config_store(&self) -> Result<Option<(String, PathBuf)>> {
        config::store_url(self.config.as_deref())
    }

    /// The schema file.
    pub fn schema_file(&self) -> Result<PathBuf> {
        config::schema_file(self.schema.as_deref(), self.config.as_deref())
    }

    /// The schema file, if one was named or is here.
    pub fn schema_file_if_any(&self) -> Result<Option<PathBuf>> {
        match self.schema_file() {
            Ok(file) => Ok(Some(file)),
            Err(failure) if failure.is(Code::NoSchema) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// What the config file says about serving.
    pub fn settings(&self) -> Result<Settings> {
        config::server(self.config.as_deref())
    }

    /// The registries that the config file declares.
    pub fn registries(&self) -> Result<Registries> {
        config::registries(self.config.as_deref())
    }

    /// The workspaces that the config file declares.
    pub fn agreements(&self) -> Result<Agreements> {
        config::agreements(self.config.as_deref())
    }

    /// Whether the store was named for this command, not for all of them.
    pub fn store_is_asked_for(&self) -> bool {
        self.asked_for.store
    }

    /// What the schema file declares, with the stores where they are. Refused if there is no schema, or
    /// if what is declared does not fit the engine of a store.
    pub async fn data(&self) -> Result<Data> {
        if let Some(server) = self.server()? {
            let data = match self.asked_for.schema {
                false => server.data().await?,
                true => Data::load(&self.schema_file()?)?,
            };
            let stores = data.schema().stores.iter().map(|store| store.name.clone());
            return stores
                .collect::<Vec<_>>()
                .iter()
                .try_fold(data, |data, name| Ok(data.at(name, server.store_url(name)?)?));
        }
        let file = self.schema_file()?;
        Choice::declared(Data::load(&file)?, &file, self)?.into_data()
    }

    /// The same with the store of whatever names none, or one store if there is no schema.
    pub async fn data_or_store(&self) -> Result<Data> {
        if self.server()?.is_some() {
            return self.data().await;
        }
        let choice = Choice::of(self)?;
        choice.refuse_unknown_place()?;
        match choice.schema {
            Some(_) => choice.into_data(),
            None => Ok(choice.data),
        }
    }

    /// Opens the store, making one if there is none.
    pub async fn open(&self) -> Result<Store> {
        Ok(keyward::open(&self.url()?).await?)
    }

    /// Opens a store that must be there: a mistyped name should not leave an empty one behind.
    pub async fn open_existing(&self) -> Result<Store> {
        open_existing(&self.url()?).await
    }

    /// Opens a store to look something up: where there is none, nothing is found, and a note says
    /// why.
    pub async fn open_to_read(&self, output: &Output) -> Result<Store> {
        let url = self.url()?;
        if let Some(store) = keyward::open_existing(&url).await? {
            return Ok(store);
        }
        if !output.json() {
            output::note(format_args!("{}; {HOW_TO_MAKE_ONE}", no_store(&url)));
        }
        Ok(keyward::open("memory:").await?)
    }
}

/// Opens the store that a URL names, which must be there.
pub async fn open_existing(url: &str) -> Result<Store> {
    keyward::open_existing(url)
        .await?
        .ok_or_else(|| Failure::new(Code::NotFound, no_store(url)).hint(HOW_TO_MAKE_ONE))
}

pub const HOW_TO_MAKE_ONE: &str = "put, import and lock exec make one";

/// Without the password that the URL may have.
pub fn no_store(url: &str) -> String {
    format!("there is no store at {}", shown(url))
}

/// A URL without the password that it may have.
pub fn shown(url: &str) -> String {
    // What cannot be read may have one anywhere.
    url.parse::<StoreUrl>().map_or_else(|_| "…".to_owned(), |url| url.to_string())
}

impl Cli {
    /// What to show beside the exit codes.
    pub const EXAMPLES: &str = r#"Examples:
  keyward -s embedded:./data put user:7:name '"Ada"'
  keyward -s embedded:./data get user:7:name
  export KEYWARD_STORE=embedded:./data
  keyward ls user --depth 1
  keyward export > all.jsonl
  keyward schema init
  keyward record query notes notes_by_title --prefix k --as ada
  keyward --server http://127.0.0.1:7480 ls"#;

    /// The whole command line, as help, completions and manual show it.
    pub fn definition() -> clap::Command {
        Self::command().after_help(format!("{}\n\n{}", Self::EXAMPLES, Exit::help()))
    }

    /// Reads this process's arguments.
    pub fn read() -> Result<Self, clap::Error> {
        Self::read_from(std::env::args_os())
    }

    /// Reads arguments, the first of which is the program.
    pub fn read_from(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut definition = Self::definition();
        let matches = definition.try_get_matches_from_mut(arguments)?;
        let mut cli =
            Self::from_arg_matches(&matches).map_err(|error| error.format(&mut definition))?;
        let said = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
        cli.target.asked_for =
            AskedFor { store: said("store"), schema: said("schema"), server: said("server") };
        Ok(cli)
    }

    /// The form asked for.
    pub fn form(&self) -> output::Form {
        match (self.shape.json, self.shape.text) {
            (true, _) => output::Form::Json,
            (false, true) => output::Form::Text,
            (false, false) => output::Form::Fitting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Cli, clap::Error> {
        Cli::read_from(line.split(' ').map(OsString::from))
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::definition().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_in_its_help() {
        fn look(command: &clap::Command) {
            let name = command.get_name();
            let help = command.get_after_help().map(ToString::to_string);
            let example = |line: &str| line.contains("keyward") && line.contains(name);
            assert!(help.is_some_and(|help| help.lines().any(example)), "{name}");
            command.get_subcommands().for_each(look);
        }
        Cli::definition().get_subcommands().for_each(look);
    }

    #[test]
    fn a_store_named_for_one_command_is_told_from_one_for_all() {
        assert!(read("keyward -s memory: ls").unwrap().target.store_is_asked_for());
        assert!(
            read("keyward record get notes note=1 -s memory:").unwrap().target.store_is_asked_for()
        );
        assert!(!read("keyward ls").unwrap().target.store_is_asked_for());
    }

    #[test]
    fn a_negative_number_is_a_value_and_flags_may_stand_anywhere() {
        for line in [
            "keyward -s memory: put n -5",
            "keyward put n -1.5e3 -s memory: --json",
            "keyward put --ttl 90s n - --if-absent -s memory:",
            "keyward record put numbers n=1 -5 --as ada --schema s.toml",
            "keyward record --as ada near places --lat -33.9 --lon -18.4 --radius 5km",
        ] {
            assert!(read(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for line in [
            "keyward ls --json --text",
            "keyward put k 1 --if-version 3 --if-absent",
            "keyward del",
            "keyward del k --prefix p",
            "keyward del --prefix p --if-version 3",
            "keyward ls --limit 0",
            "keyward ls --depth 0",
            "keyward watch p --key k",
            "keyward put k 1 --ttl 0s",
            "keyward record put notes n=1 {} --ttl 1h --no-ttl",
            "keyward record query notes --from a --prefix b",
            "keyward record query notes --all --limit 3",
            "keyward record near places --lat 1 --lon 1 --radius 5",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
