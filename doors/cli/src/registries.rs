//! Registries as commands reach them: those that the config file declares, and others.

use std::path::PathBuf;

use clap::Args;
use keyward::registry::{self, OpenStore, Registry, Repository, ScheduleSetting, Settings};
use keyward::{Code, Data, Store, SystemClock};

use crate::args::{self, Target};
use crate::config::Registries;
use crate::failure::{Failure, Result};
use crate::output::{Output, note};
use crate::queues::worker;
use crate::served::Served;
use crate::store_choice;

/// A registry that no config file declares, and where repositories are kept.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Registries that the config file does not declare")]
pub struct Undeclared {
    /// Where the repository is: a path, https://, ssh://, git://, file:// or user@host:path
    #[arg(long, global = true, value_name = "PLACE")]
    repository: Option<String>,
    /// The branch [default: what the remote's HEAD names]
    #[arg(long, global = true, value_name = "NAME")]
    branch: Option<String>,
    /// Below which folder of the repository files are policies [default: anywhere]
    #[arg(long, global = true, value_name = "PATH")]
    folder: Option<String>,
    /// Which files below the folder are policies; may be repeated [default: **/*.md]
    #[arg(long, global = true, value_name = "GLOB")]
    include: Vec<String>,
    /// Which of those are none; may be repeated [default: **/README.md]
    #[arg(long, global = true, value_name = "GLOB")]
    exclude: Vec<String>,
    /// A word before the registry's keys, where a store has several registries
    #[arg(long, global = true, value_name = "WORD")]
    prefix: Option<String>,
}

/// Where what is fetched is kept.
#[derive(Debug, Clone, Default, Args)]
pub struct Cache {
    /// The folder for what is fetched from repositories [default: ~/.cache/keyward/registries]
    #[arg(long, global = true, value_name = "DIR", env = "KEYWARD_CACHE")]
    cache: Option<PathBuf>,
}

impl Cache {
    /// What was said for this command, else what a config file says, else the user's.
    fn folder(&self, declared: &Registries) -> Option<PathBuf> {
        let given = self.cache.clone().filter(|cache| !cache.as_os_str().is_empty());
        given.or_else(|| declared.cache.clone())
    }

    /// The folder for what is fetched from a repository; an empty one, for one that is opened in place.
    pub fn for_repository(
        &self,
        declared: &Registries,
        repository: &Repository,
    ) -> Result<PathBuf> {
        match self.folder(declared) {
            Some(folder) => Ok(folder),
            None if repository.path().is_some() => Ok(PathBuf::new()),
            None => {
                let message = "nothing says where to keep what is fetched, and there is no home";
                Err(Failure::invalid(message).hint("Give --cache DIR, or KEYWARD_CACHE."))
            }
        }
    }
}

impl Undeclared {
    /// Whether nothing is said of one.
    pub fn is_empty(&self) -> bool {
        let Self { repository, branch, folder, include, exclude, prefix } = self;
        [repository, branch, folder, prefix].iter().all(|given| given.is_none())
            && include.is_empty()
            && exclude.is_empty()
    }

    /// What these flags say; without a repository, what can be done without one.
    fn settings(&self) -> Result<(Settings, bool)> {
        let Self { repository, branch, folder, include, exclude, prefix } = self.clone();
        let is_whole = repository.is_some();
        let repository = repository.unwrap_or_else(|| ".".to_owned());
        let repository = Repository::parse(repository).map_err(Failure::invalid)?;
        let mut settings = Settings::new(repository);
        settings.branch = branch;
        settings.folder = folder.unwrap_or_default();
        settings.prefix = prefix;
        settings.schedule = ScheduleSetting::Off(registry::Off::Off);
        if !include.is_empty() {
            settings.include = include;
        }
        if !exclude.is_empty() {
            settings.exclude = exclude;
        }
        Ok((settings, is_whole))
    }
}

/// The registries that a command can reach.
pub struct Reach<'t> {
    target: &'t Target,
    registries: Registries,
    undeclared: Undeclared,
    cache: Cache,
}

impl<'t> Reach<'t> {
    /// Reads the config file, and opens nothing yet.
    pub fn new(target: &'t Target, undeclared: Undeclared, cache: Cache) -> Result<Self> {
        let registries = target.registries()?;
        Ok(Self { target, registries, undeclared, cache })
    }

    /// The server that is meant, if one is.
    pub fn server(&self) -> Result<Option<Served>> {
        self.target.server()
    }

    /// The names of the registries that the config file declares.
    pub fn names(&self) -> Vec<String> {
        self.registries.declared.keys().cloned().collect()
    }

    /// The config file, for people.
    pub fn file(&self) -> String {
        let file = self.registries.file.as_deref();
        file.map_or_else(|| "keyward.toml".to_owned(), |file| file.display().to_string())
    }

    /// Whether it is said where the repository of a registry is.
    pub fn knows_repository(&self, name: &str) -> bool {
        self.registries.declared.contains_key(name) || self.undeclared.repository.is_some()
    }

    /// A registry with its repository, in a store that is made if it does not exist.
    pub async fn open(&self, name: &str) -> Result<Registry> {
        let (settings, is_whole) = self.settings(name)?;
        if !is_whole {
            return Err(self.undeclared(name));
        }
        let (data, place) = self.place(&settings).await?;
        self.registry(name, settings, data.records(&place).await?.store())
    }

    /// A registry whose store need not be there: then it is empty, and a note says why. Its repository is
    /// not needed if the store knows the registry.
    pub async fn to_read(&self, name: &str, output: &Output) -> Result<Registry> {
        let (settings, is_whole) = self.settings(name)?;
        let (data, place) = self.place(&settings).await?;
        let registry = match data.existing_records(&place).await? {
            Some(records) => self.registry(name, settings, records.store())?,
            None => {
                if !output.json() {
                    let missing = args::no_store(&data.url(&place)?);
                    note(format_args!("{missing}; keyward sync makes one"));
                }
                self.registry(name, settings, &keyward::open("memory:").await?)?
            }
        };
        if !is_whole && registry.runs(None, 1).await?.items.is_empty() {
            return Err(self.undeclared(name));
        }
        Ok(registry)
    }

    /// A registry with its repository, whose store need not be there: then it is empty.
    pub async fn to_plan(&self, name: &str) -> Result<Registry> {
        let (settings, is_whole) = self.settings(name)?;
        if !is_whole {
            return Err(self.undeclared(name));
        }
        let (data, place) = self.place(&settings).await?;
        match data.existing_records(&place).await? {
            Some(records) => self.registry(name, settings, records.store()),
            None => self.registry(name, settings, &keyward::open("memory:").await?),
        }
    }

    /// A registry whose store must be there.
    pub async fn existing(&self, name: &str) -> Result<Registry> {
        let (settings, is_whole) = self.settings(name)?;
        let (data, place) = self.place(&settings).await?;
        let Some(records) = data.existing_records(&place).await? else {
            let missing = args::no_store(&data.url(&place)?);
            let failure = Failure::new(Code::NotFound, missing);
            return Err(failure.hint("keyward sync makes one."));
        };
        let registry = self.registry(name, settings, records.store())?;
        if !is_whole && registry.runs(None, 1).await?.items.is_empty() {
            return Err(self.undeclared(name));
        }
        Ok(registry)
    }

    /// What a registry is, and whether that includes its repository.
    fn settings(&self, name: &str) -> Result<(Settings, bool)> {
        match self.registries.declared.get(name) {
            Some(_) if !self.undeclared.is_empty() => {
                let message = format!("{} declares the registry {name} already", self.file());
                Err(Failure::invalid(message)
                    .hint("Leave out the flags that say what it is, or choose another name."))
            }
            Some(declared) => Ok((declared.clone(), true)),
            None => self.undeclared.settings(),
        }
    }

    fn undeclared(&self, name: &str) -> Failure {
        let known = self.names().join(", ");
        let message = match (&self.registries.file, known.as_str()) {
            (None, _) => format!("nothing says what the registry {name} is"),
            (Some(file), "") => format!("{} declares no registries", file.display()),
            (Some(file), known) => {
                format!("{} declares no registry {name}; it declares {known}", file.display())
            }
        };
        Failure::new(Code::UnknownRegistry, message).hint(format!(
            "Give --repository, or write into {}:\n  [registries.{name}]\n  repository = \"https://…\"",
            self.file()
        ))
    }

    /// The stores, and which of them a registry is in.
    async fn place(&self, settings: &Settings) -> Result<(Data, String)> {
        store_choice::of_system(self.target, settings.store.as_deref(), Data::registry_store).await
    }

    fn registry(&self, name: &str, settings: Settings, store: &Store) -> Result<Registry> {
        let cache = self.cache.for_repository(&self.registries, &settings.repository)?;
        let who = worker();
        let open_store =
            Some(OpenStore::new(|url| Box::pin(async move { keyward::open(&url).await })));
        let options = registry::Options { who, open_store, ..registry::Options::default() };
        Ok(Registry::open_with(name, store.clone(), settings, &cache, SystemClock, options)?)
    }
}

/// The first digits of an id of git, as people name it.
pub fn short(id: &str) -> &str {
    id.get(..7).unwrap_or(id)
}
