//! The workspaces of a config file, and what is wrong with them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use keyward::agreements::{Error, Settings};
use keyward::{models, registry};

use super::problem::{Found, Problem};

/// The workspaces that a config file declares.
#[derive(Debug, Clone, Default)]
pub struct Agreements {
    /// What they are, by their names.
    pub declared: BTreeMap<String, Settings>,
    /// The file that declares them.
    pub file: Option<PathBuf>,
}

/// All that is wrong with workspaces that a text declares.
pub fn problems(declared: &BTreeMap<String, Settings>, text: &str) -> Vec<Problem> {
    let mut found = Found::in_table("agreements", text);
    for (name, settings) in declared {
        // Names of registries and of workspaces stand in the same places: scopes, and paths of URLs.
        if let Err(problem) = registry::Settings::check_name(name) {
            found.add(name, "", problem.reason);
        }
        if let Err(error) = settings.check() {
            let (setting, reason) = about(&error);
            found.add(name, &setting, reason);
        }
    }
    let mut seen = BTreeMap::new();
    for (name, settings) in declared {
        if let Some(other) = seen.insert(settings.store.clone(), name) {
            let reason = format!(
                "has the same store as agreements.{other}, and each would take the other's pages for \
                 its own; give one of them a store of its own"
            );
            found.add(name, "", reason);
        }
    }
    found.problems()
}

/// Which setting an error is about, and what it says of it.
fn about(error: &Error) -> (String, String) {
    if let Error::Model(models::Error::Unset { setting, reason }) = error {
        return (format!("models.{setting}"), reason.clone());
    }
    let told = error.to_string();
    let is_setting = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || "._".contains(c));
    match told.split_once(": ") {
        Some((setting, reason)) if is_setting(setting) => (setting.to_owned(), reason.to_owned()),
        _ => (String::new(), told),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::problem::drawn;
    use super::*;

    fn told(text: &str) -> Vec<String> {
        #[derive(serde::Deserialize)]
        struct File {
            agreements: BTreeMap<String, Settings>,
        }
        let file: File = toml::from_str(text).unwrap();
        let told = drawn(Path::new("k.toml"), &problems(&file.agreements, text));
        told.lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn every_problem_is_told_with_its_line() {
        let told = told(
            r#"
[agreements.supply]
pages = { folder = "pages" }
lease = "0s"

[agreements."no name"]
store = "other"
pages = { uploads = true }

[agreements.models]
store = "third"
pages = { folder = "pages" }

[agreements.models.models]
provider = "ollama"
model = "two words"
"#,
        );
        let places: Vec<&str> =
            told.iter().map(|line| line.split(": ").next().unwrap_or_default()).collect();
        assert_eq!(places, ["k.toml:4", "k.toml:6", "k.toml:16"], "{told:#?}");
        assert!(told[0].starts_with("k.toml:4: agreements.supply.lease: "), "{told:#?}");
        assert!(told[2].starts_with("k.toml:16: agreements.models.models.model: "), "{told:#?}");
    }

    #[test]
    fn two_workspaces_do_not_share_a_store() {
        let two = |second: &str| {
            let pages = "pages = { uploads = true }";
            told(&format!("[agreements.a]\n{pages}\n[agreements.b]\n{pages}\n{second}"))
        };
        assert!(
            two("")[0].starts_with("k.toml:3: agreements.b: has the same store"),
            "{:?}",
            two("")
        );
        assert!(two("store = \"other\"").is_empty());
    }
}
