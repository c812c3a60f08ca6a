//! Which store and which schema is meant: the flag, the environment or a config file; and what else a
//! config file declares.

mod agreements;
mod problem;
mod registries;

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use keyward::{Code, agreements as workspace, registry};
use serde::Deserialize;

pub use self::agreements::Agreements;
pub use self::registries::Registries;
use crate::failure::{Failure, Result};
use crate::settings::Settings;

/// The config file of the current directory.
const LOCAL: &str = "keyward.toml";
/// The user's config file, below the configuration directory.
const OF_USER: &str = "keyward/config.toml";
/// What is fetched from repositories, below the cache directory.
const CACHE_OF_USER: &str = "keyward/registries";

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
    /// The folder for what is fetched from repositories, relative to this file.
    cache: Option<PathBuf>,
    /// What `keyward serve` is told.
    #[serde(default)]
    server: Settings,
    /// Documents that are kept in git, by the names of their registries.
    #[serde(default)]
    registries: BTreeMap<String, registry::Settings>,
    /// Agreements under work, by the names of their workspaces.
    #[serde(default)]
    agreements: BTreeMap<String, workspace::Settings>,
}

/// The store that the config file names, by its URL or its name, if it does, and the file: `config`, else `./keyward.toml`, else
/// the user's config file. The first file that exists decides.
pub fn store_url(config: Option<&Path>) -> Result<Option<(String, PathBuf)>> {
    let Some((path, text)) = read(config)? else { return Ok(None) };
    let Some(url) = parse(&path, &text)?.store else { return Ok(None) };
    // A text without a colon is the name of a store in the schema.
    match url.contains(':') {
        true => Ok(Some((keyward::url_beside(folder(&path), &url)?, path))),
        false => Ok(Some((url, path))),
    }
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
    Err(Failure::new(Code::NoSchema, message).hint(SCHEMA_WAYS))
}

/// What the config file says about serving; files that it names are relative to it.
pub fn server(config: Option<&Path>) -> Result<Settings> {
    match read(config)? {
        Some((path, text)) => parse(&path, &text)?.server.beside(folder(&path)),
        None => Ok(Settings::default()),
    }
}

/// The registries that the config file declares; what they name is relative to it. Refused if one of them
/// makes no sense, with all that is wrong.
pub fn registries(config: Option<&Path>) -> Result<Registries> {
    let usual = || cache_of_user(|name| env::var_os(name));
    let Some((path, text)) = read(config)? else {
        return Ok(Registries { cache: usual(), ..Registries::default() });
    };
    let Config { registries, cache, .. } = parse(&path, &text)?;
    let problems = registries::problems(&registries, &text);
    if !problems.is_empty() {
        return Err(unusable(&path).drawn(problem::drawn(&path, &problems)));
    }
    let folder = folder(&path);
    let beside = |(name, settings): (String, registry::Settings)| (name, settings.beside(folder));
    Ok(Registries {
        declared: registries.into_iter().map(beside).collect(),
        cache: cache.map(|cache| folder.join(cache)).or_else(usual),
        file: Some(path),
    })
}

/// The workspaces that the config file declares; what they name is relative to it. Refused if one of them
/// makes no sense, with all that is wrong.
pub fn agreements(config: Option<&Path>) -> Result<Agreements> {
    let Some((path, text)) = read(config)? else { return Ok(Agreements::default()) };
    let Config { agreements, .. } = parse(&path, &text)?;
    let problems = agreements::problems(&agreements, &text);
    if !problems.is_empty() {
        return Err(unusable(&path).drawn(problem::drawn(&path, &problems)));
    }
    let folder = folder(&path);
    let beside = |(name, settings): (String, workspace::Settings)| (name, settings.beside(folder));
    let declared = agreements.into_iter().map(beside).collect();
    Ok(Agreements { declared, file: Some(path) })
}

/// Where what is fetched is kept when nobody says: below the user's cache directory, if there is one.
fn cache_of_user(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    of_user("XDG_CACHE_HOME", ".cache", variable).map(|folder| folder.join(CACHE_OF_USER))
}

/// A directory of the user: what a variable says, else one below the home.
fn of_user(
    name: &str,
    below_home: &str,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    set(name).map(PathBuf::from).or_else(|| Some(Path::new(&set("HOME")?).join(below_home)))
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
    let of_user = of_user("XDG_CONFIG_HOME", ".config", variable);
    let mut candidates = vec![PathBuf::from(LOCAL)];
    candidates.extend(of_user.map(|directory| directory.join(OF_USER)));
    candidates
}

fn parse(path: &Path, text: &str) -> Result<Config> {
    toml::from_str(text)
        .map_err(|error| unusable(path).drawn(without_passwords(error.to_string().trim_end())))
}

/// The same with what stands between `://` and `@`, which may have a password, made out; as long as before,
/// so that what points at it still does.
fn without_passwords(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("://").map(|at| at + "://".len()) {
        let (before, after) = rest.split_at(start);
        let end = after.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\''));
        let (host, after) = after.split_at(end.unwrap_or(after.len()));
        shown.push_str(before);
        match host.rfind('@') {
            Some(at) => {
                shown.extend(host[..at].chars().map(|_| '*'));
                shown.push_str(&host[at..]);
            }
            None => shown.push_str(host),
        }
        rest = after;
    }
    shown + rest
}

fn unusable(path: &Path) -> Failure {
    Failure::invalid(format!("{} is no valid config file", path.display()))
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

    #[test]
    fn what_is_wrong_is_shown_without_passwords() {
        let shown = without_passwords("a = \"https://ada:pw@b/p\" # see http://c/d@e\n    ^^^^ no");
        assert_eq!(shown, "a = \"https://******@b/p\" # see http://c/d@e\n    ^^^^ no");
        assert_eq!(without_passwords("postgres://정:비@db"), "postgres://***@db");
    }

    #[test]
    fn what_is_fetched_goes_below_the_users_cache_directory() {
        let cache = |set: &'static [(&str, &str)]| {
            cache_of_user(|name| {
                set.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into())
            })
        };
        assert_eq!(cache(&[]), None);
        assert_eq!(
            cache(&[("HOME", "/home/ada")]),
            Some("/home/ada/.cache/keyward/registries".into())
        );
        assert_eq!(
            cache(&[("HOME", "/home/ada"), ("XDG_CACHE_HOME", "/var/cache")]),
            Some("/var/cache/keyward/registries".into())
        );
    }
}
