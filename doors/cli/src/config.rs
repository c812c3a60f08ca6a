//! Which store is meant: the flag, the environment or a config file.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::failure::{Failure, Result};

/// The config file of the current directory.
const LOCAL: &str = "keyward.toml";
/// The user's config file, below the configuration directory.
const OF_USER: &str = "keyward/config.toml";

const THREE_WAYS: &str = "Name it in one of three ways:
  keyward -s embedded:./data ...          for one command
  export KEYWARD_STORE=embedded:./data    for this shell
  store = \"embedded:./data\"               in ./keyward.toml, in
                                          ~/.config/keyward/config.toml, or in --config FILE";

/// What a config file can say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// The URL of the store.
    store: Option<String>,
}

/// The URL of the store: `given` (by flag or environment), else what the config file `config` says,
/// else `./keyward.toml`, else the user's config file. The first file that exists decides.
pub fn store_url(given: Option<&str>, config: Option<&Path>) -> Result<String> {
    if let Some(url) = given.filter(|url| !url.is_empty()) {
        return Ok(url.to_owned());
    }
    let Some((path, text)) = read(config)? else {
        return Err(Failure::invalid("no store was named").hint(THREE_WAYS));
    };
    let config: Config = toml::from_str(&text).map_err(|error| {
        Failure::invalid(format!("{} is no valid config file", path.display()))
            .drawn(error.to_string().trim_end())
    })?;
    let Some(url) = config.store else {
        let message = format!("no store was named, not in {} either", path.display());
        return Err(Failure::invalid(message).hint(THREE_WAYS));
    };
    beside(&path, &url)
}

/// The config file that decides, with what it says. One that was asked for must exist.
fn read(asked_for: Option<&Path>) -> Result<Option<(PathBuf, String)>> {
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

/// A URL as it stands in a config file: the place of an embedded store is relative to the file, so
/// that the file means the same from everywhere.
fn beside(config: &Path, url: &str) -> Result<String> {
    let Some(rest) = url.strip_prefix("embedded:") else {
        return Ok(url.to_owned());
    };
    let (place, options) = match rest.find('?') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let directory = config.parent().unwrap_or(Path::new(""));
    if place.is_empty() || Path::new(place).is_absolute() || directory == Path::new("") {
        return Ok(url.to_owned());
    }
    let place = directory.join(place);
    match place.to_str().filter(|place| !place.contains('?')) {
        Some(place) => Ok(format!("embedded:{place}{options}")),
        None => Err(Failure::invalid(format!(
            "a store cannot be at {}: its path must be UTF-8 and without a question mark",
            place.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_place_is_relative_to_the_config_file() {
        let beside = |config: &str, url| beside(Path::new(config), url).unwrap();
        let relaxed = "embedded:./data?durability=relaxed";
        assert_eq!(
            beside("/etc/kw/keyward.toml", relaxed),
            "embedded:/etc/kw/./data?durability=relaxed"
        );
        assert_eq!(beside("keyward.toml", relaxed), relaxed);
        assert_eq!(beside("up/keyward.toml", "embedded:data"), "embedded:up/data");
        for url in ["embedded:/var/data", "memory:", "no url"] {
            assert_eq!(beside("/etc/kw/keyward.toml", url), url);
        }
    }

    #[test]
    fn a_directory_that_no_url_can_name_is_refused() {
        let error = beside(Path::new("/what?/keyward.toml"), "embedded:data").unwrap_err();
        assert_eq!(error.exit(), crate::exit::Exit::Invalid);
    }

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
