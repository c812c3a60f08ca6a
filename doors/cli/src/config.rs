//! Which store and which schema is meant: the flag, the environment or a config file.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::settings::Settings;

/// The config file of the current directory.
const LOCAL: &str = "keyward.toml";
/// The user's config file, below the configuration directory.
const OF_USER: &str = "keyward/config.toml";

const THREE_WAYS: &str = "Name it in one of three ways:
  keyward -s embedded:./data ...          for one command
  export KEYWARD_STORE=embedded:./data    for this shell
  store = \"embedded:./data\"               in ./keyward.toml, in
                                          ~/.config/keyward/config.toml, or in --config FILE";

/// The schema file that is looked for in the current directory.
pub const SCHEMA: &str = "keyward.schema.toml";

const SCHEMA_WAYS: &str = "Write one with keyward schema init, or name yours:
  keyward --schema FILE ...               for one command
  export KEYWARD_SCHEMA=FILE              for this shell
  schema = \"FILE\"                         in ./keyward.toml, in
                                          ~/.config/keyward/config.toml, or in --config FILE";

/// What a config file can say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// The URL of the store.
    store: Option<String>,
    /// The schema file, relative to this one.
    schema: Option<PathBuf>,
    /// What `keyward serve` is told.
    #[serde(default)]
    server: Settings,
}

/// The URL of the store: `given` (by flag or environment), else what the config file `config` says,
/// else `./keyward.toml`, else the user's config file. The first file that exists decides.
pub fn store_url(given: Option<&str>, config: Option<&Path>) -> Result<String> {
    if let Some(url) = given.filter(|url| !url.is_empty()) {
        return Ok(url.to_owned());
    }
    let Some((path, text)) = read(config)? else {
        return Err(no_store("no store was named"));
    };
    let Some(url) = parse(&path, &text)?.store else {
        let message = format!("no store was named, not in {} either", path.display());
        return Err(no_store(message));
    };
    Ok(keyward::url_beside(folder(&path), &url)?)
}

/// The config file that says where the store is, if one does.
pub fn naming_store(config: Option<&Path>) -> Result<Option<PathBuf>> {
    let Some((path, text)) = read(config)? else { return Ok(None) };
    Ok(parse(&path, &text)?.store.map(|_| path))
}

fn no_store(message: impl Into<String>) -> Failure {
    Failure::new(Exit::Invalid, "no-store", message).hint(THREE_WAYS)
}

/// The schema file: `given` (by flag or environment), else what the config file says, else
/// `./keyward.schema.toml`.
pub fn schema_file(given: Option<&Path>, config: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given.filter(|path| *path != Path::new("")) {
        return Ok(path.to_owned());
    }
    if let Some((path, text)) = read(config)?
        && let Some(schema) = parse(&path, &text)?.schema
    {
        return Ok(folder(&path).join(schema));
    }
    let local = PathBuf::from(SCHEMA);
    if local.exists() {
        return Ok(local);
    }
    let message = format!("no schema was named, and there is no {SCHEMA} here");
    Err(Failure::new(Exit::Invalid, "no-schema", message).hint(SCHEMA_WAYS))
}

/// What the config file says about serving; files that it names are relative to it.
pub fn server(config: Option<&Path>) -> Result<Settings> {
    match read(config)? {
        Some((path, text)) => parse(&path, &text)?.server.beside(folder(&path)),
        None => Ok(Settings::default()),
    }
}

/// The config file that decides, with what it says. One that was asked for must exist.
fn read(asked_for: Option<&Path>) -> Result<Option<(PathBuf, String)>> {
    // An empty variable is none.
    let asked_for = asked_for.filter(|path| *path != Path::new(""));
    let candidates = match asked_for {
        Some(path) => vec![path.to_owned()],
        None => candidates(|name| env::var_os(name)),
    };
    for path in candidates {
        match fs::read_to_string(&path) {
            Ok(text) => return Ok(Some((path, text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && asked_for.is_none() => {}
            Err(error) => {
                let what = format!("cannot read the config file {}", path.display());
                return Err(Failure::file(what, &error));
            }
        }
    }
    Ok(None)
}

/// Where a config file may be, in the order of looking.
fn candidates(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let of_user = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&set("HOME")?).join(".config")));
    let mut candidates = vec![PathBuf::from(LOCAL)];
    candidates.extend(of_user.map(|directory| directory.join(OF_USER)));
    candidates
}

fn parse(path: &Path, text: &str) -> Result<Config> {
    toml::from_str(text).map_err(|error| {
        Failure::invalid(format!("{} is no valid config file", path.display()))
            .drawn(error.to_string().trim_end())
    })
}

/// What a relative path of a config file is relative to.
fn folder(config: &Path) -> &Path {
    config.parent().unwrap_or(Path::new(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_directory_comes_before_the_user() {
        let environment = |set: &'static [(&str, &str)]| {
            candidates(|name| {
                let found = set.iter().find(|(other, _)| *other == name);
                found.map(|(_, value)| value.into())
            })
        };
        let local = Path::new("keyward.toml");
        assert_eq!(environment(&[]), [local]);
        assert_eq!(
            environment(&[("HOME", "/home/ada")]),
            [local, Path::new("/home/ada/.config/keyward/config.toml")]
        );
        assert_eq!(
            environment(&[("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "/cfg")]),
            [local, Path::new("/cfg/keyward/config.toml")]
        );
    }
}
