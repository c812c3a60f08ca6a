//! The registries of a config file, and what is wrong with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use keyward::registry::{Settings, SettingsProblem};
use toml::de::{DeTable, DeValue};

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

/// Something that is wrong, with the line that says it.
pub struct Problem {
    line: usize,
    what: SettingsProblem,
}

/// All that is wrong with registries that a text declares.
pub fn problems(declared: &BTreeMap<String, Settings>, text: &str) -> Vec<Problem> {
    let lines = Lines::of(text);
    let mut problems = Vec::new();
    let mut add = |name: &str, setting: String, reason: String| {
        let line = lines.of_setting(name, &setting);
        let setting = match setting.as_str() {
            "" => format!("registries.{name}"),
            setting => format!("registries.{name}.{setting}"),
        };
        problems.push(Problem { line, what: SettingsProblem { setting, reason } });
    };
    for (name, settings) in declared {
        if let Err(problem) = Settings::check_name(name) {
            add(name, String::new(), problem.reason);
        }
        for problem in settings.check().err().unwrap_or_default() {
            add(name, problem.setting, problem.reason);
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
            add(name, String::new(), reason);
        }
    }
    problems.sort_by_key(|problem| problem.line);
    problems
}

/// Problems for people, a line each.
pub fn drawn(file: &Path, problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        let Problem { line, what: SettingsProblem { setting, reason } } = problem;
        format!("  {}:{line}: {setting}: {reason}", file.display())
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Where a text says what.
struct Lines<'t> {
    text: &'t str,
    file: Option<DeTable<'t>>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, file: DeTable::parse(text).ok().map(|file| file.into_inner()) }
    }

    /// The line of a setting; of one that is left out, that of what it would be in.
    fn of_setting(&self, name: &str, setting: &str) -> usize {
        let mut place = 0;
        let mut table = self.file.as_ref();
        for member in ["registries", name].into_iter().chain(setting.split('.')) {
            let found = table
                .and_then(|table| table.iter().find(|(key, _)| key.get_ref().as_ref() == member));
            let Some((key, value)) = found else { break };
            place = key.span().start;
            table = match value.get_ref() {
                DeValue::Table(table) => Some(table),
                _ => None,
            };
        }
        1 + self.text[..place].matches('\n').count()
    }
}

#[cfg(test)]
mod tests {
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
