//! The registries of a config file, and what is wrong with them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use keyward::registry::Settings;

use super::problem::{Found, Problem};

/// The registries that a config file declares.
#[derive(Debug, Clone, Default)]
pub struct Registries {
    /// What they are, by their names.
    pub declared: BTreeMap<String, Settings>,
    /// The folder for what is fetched; none if nobody says, and the user has no home.
    pub cache: Option<PathBuf>,
    /// The file that declares them.
    pub file: Option<PathBuf>,
}

/// All that is wrong with registries that a text declares.
pub fn problems(declared: &BTreeMap<String, Settings>, text: &str) -> Vec<Problem> {
    let mut found = Found::in_table("registries", text);
    for (name, settings) in declared {
        if let Err(problem) = Settings::check_name(name) {
            found.add(name, "", problem.reason);
        }
        for problem in settings.check().err().unwrap_or_default() {
            found.add(name, &problem.setting, problem.reason);
        }
    }
    let places = |settings: &Settings| (settings.store.clone(), settings.prefix.clone());
    let mut seen = BTreeMap::new();
    for (name, settings) in declared {
        if let Some(other) = seen.insert(places(settings), name) {
            let reason = format!(
                "has the same store and prefix as registries.{other}, and each would delete what the \
                 other has; give one of them a prefix, or a store of its own"
            );
            found.add(name, "", reason);
        }
    }
    found.problems()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::problem::drawn;
    use super::*;

    fn told(text: &str) -> Vec<String> {
        #[derive(serde::Deserialize)]
        struct File {
            registries: BTreeMap<String, Settings>,
        }
        let file: File = toml::from_str(text).unwrap();
        let told = drawn(Path::new("k.toml"), &problems(&file.registries, text));
        told.lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn every_problem_is_told_with_its_line() {
        let told = told(
            r#"
[registries.policies]
repository = "p"
retries = 0
schedule = { cron = "61 * * * *" }

[registries."no name"]
repository = "p"
prefix = "b"

[registries.policies.consumers.site]
post = "ftp://example.org"
"#,
        );
        let places: Vec<&str> = told.iter().map(|line| line.rsplit(": ").last().unwrap()).collect();
        assert_eq!(places, ["k.toml:4", "k.toml:5", "k.toml:7", "k.toml:12"], "{told:#?}");
        assert!(told[1].starts_with("k.toml:5: registries.policies.schedule.cron: "), "{told:#?}");
    }

    #[test]
    fn two_registries_do_not_share_their_keys() {
        let two = |second: &str| {
            told(&format!(
                "[registries.a]\nrepository = \"a\"\n[registries.b]\nrepository = \"b\"\n{second}"
            ))
        };
        assert!(two("")[0].starts_with("k.toml:3: registries.b: "), "{:?}", two(""));
        assert!(two("prefix = \"b\"").is_empty());
        assert!(two("store = \"other\"").is_empty());
    }
}
