//! What a registry is, as a configuration says it.

mod check;
mod consumer;
mod repository;
mod secret;
mod time;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use check::SettingsProblem;
pub(crate) use check::{NAME_HINT, is_name};
pub use consumer::{Bucket, Consumer, ConsumerKind, S3};
pub use repository::Repository;
pub use secret::Secret;

/// What a registry is: where its policies are kept in git, where they go, when and for whom.
///
/// Made by serde, from `[registries.NAME]` of a configuration. Names that are not known are refused.
/// [`Settings::check`] finds what serde cannot.
///
/// ```
/// use keyward_registry::Settings;
///
/// let settings: Settings = serde_json::from_str(r#"{"repository":"https://example.org/p.git"}"#)?;
/// assert_eq!(settings.exclude, ["**/README.md"]);
/// assert!(settings.check().is_ok());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Where the repository is.
    pub repository: Repository,
    /// Which branch; by default the one that the remote's `HEAD` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Below which folder files are policies; by default anywhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// Which files are policies: globs on their paths below the folder.
    #[serde(default = "markdown")]
    pub include: Vec<String>,
    /// Which of those are none.
    #[serde(default = "readmes")]
    pub exclude: Vec<String>,
    /// The store's name, for those who open stores by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// A segment before the registry's keys, so that several registries share a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// When it is synced without being asked.
    #[serde(default)]
    pub schedule: ScheduleSetting,
    /// What the repository is opened with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// A file with certificates (PEM) of authorities that are trusted besides the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<PathBuf>,
    /// Who may say that something was pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
    /// The largest part of the registry that a run deletes without being allowed to.
    #[serde(default = "half")]
    pub mass_delete_percent_max: u8,
    /// How long deprecated members of entries stay.
    #[serde(default = "ninety_days", with = "time")]
    pub deprecated_kept: Duration,
    /// How long it is kept what runs did.
    #[serde(default = "ninety_days", with = "time")]
    pub runs_kept: Duration,
    /// How much of a repository is looked at.
    #[serde(default)]
    pub limits: Limits,
    /// How often a consumer is told of a change before it is a dead letter.
    #[serde(default = "three")]
    pub retries: u32,
    /// Who is told of changes, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub consumers: BTreeMap<String, Consumer>,
}

/// When a registry is synced without being asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ScheduleSetting {
    /// At these times.
    Cron(Cron),
    /// `"off"`: never.
    Off(Off),
}

/// Times of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cron {
    /// Five fields: minute, hour, day of the month, month, day of the week.
    pub cron: String,
    /// In which time zone, by its IANA name.
    #[serde(default = "utc")]
    pub time_zone: String,
}

/// The word `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Off {
    /// The word.
    #[serde(rename = "off")]
    Off,
}

impl Default for ScheduleSetting {
    /// At 16:00 UTC, every day.
    fn default() -> Self {
        Self::Cron(Cron { cron: "0 16 * * *".to_owned(), time_zone: utc() })
    }
}

/// What a repository is opened with. Secrets are read when they are used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// A token, sent as the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// A user's name; with a token, one that the host wants besides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// A password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// The file of a private key, for ssh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_key: Option<String>,
}

/// Who may say that something was pushed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// What they sign with.
    pub secret: Secret,
}

/// How much of a repository is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The largest file that can be a policy.
    pub blob_bytes_max: u64,
    /// The most files that are policies; a tree with more is refused as a whole.
    pub files_max: u64,
    /// The longest time that a fetch takes.
    #[serde(with = "time")]
    pub fetch_time_max: Duration,
}

impl Default for Limits {
    /// Files of a mebibyte, 200,000 of them, ten minutes.
    fn default() -> Self {
        Self {
            blob_bytes_max: 1 << 20,
            files_max: 200_000,
            fetch_time_max: Duration::from_secs(600),
        }
    }
}

impl Settings {
    /// The settings of a registry of this repository, with everything else as it is by default.
    pub fn new(repository: Repository) -> Self {
        Self {
            repository,
            branch: None,
            folder: String::new(),
            include: markdown(),
            exclude: readmes(),
            store: None,
            prefix: None,
            schedule: ScheduleSetting::default(),
            credentials: None,
            authority: None,
            webhook: None,
            mass_delete_percent_max: half(),
            deprecated_kept: ninety_days(),
            runs_kept: ninety_days(),
            limits: Limits::default(),
            retries: three(),
            consumers: BTreeMap::new(),
        }
    }

    /// The same, with paths that are relative taken from a folder: that of the configuration.
    #[must_use]
    pub fn beside(mut self, folder: &Path) -> Self {
        self.repository = self.repository.beside(folder);
        if let Some(credentials) = &mut self.credentials {
            for secret in [&mut credentials.token, &mut credentials.password].into_iter().flatten()
            {
                secret.beside(folder);
            }
            if let Some(key) = &mut credentials.ssh_key {
                *key = folder.join(&*key).to_string_lossy().into_owned();
            }
        }
        if let Some(authority) = &mut self.authority {
            *authority = folder.join(&*authority);
        }
        if let Some(webhook) = &mut self.webhook {
            webhook.secret.beside(folder);
        }
        for consumer in self.consumers.values_mut() {
            consumer.beside(folder);
        }
        self
    }

    /// What decides which files are policies, as one short text: while it is the same, a tree that was
    /// compared whole needs no second look.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        add("1");
        add(self.folder.trim_matches('/'));
        for globs in [&self.include, &self.exclude] {
            add(&globs.len().to_string());
            globs.iter().for_each(|glob| add(glob));
        }
        add(&self.limits.blob_bytes_max.to_string());
        data_encoding::HEXLOWER.encode(&hash.finalize()[..16])
    }
}

fn markdown() -> Vec<String> {
    vec!["**/*.md".to_owned()]
}

fn readmes() -> Vec<String> {
    vec!["**/README.md".to_owned()]
}

fn utc() -> String {
    "UTC".to_owned()
}

fn half() -> u8 {
    50
}

fn ninety_days() -> Duration {
    Duration::from_secs(90 * 24 * 60 * 60)
}

fn three() -> u32 {
    3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn what_is_left_out_is_as_documented() {
        let settings = parse(r#"{"repository":"./policies"}"#).unwrap();
        assert_eq!(settings, Settings::new(Repository::parse("./policies").unwrap()));
        assert_eq!(settings.include, ["**/*.md"]);
        assert_eq!(settings.runs_kept, Duration::from_secs(90 * 86_400));
        let ScheduleSetting::Cron(times) = settings.schedule else { panic!() };
        assert_eq!((&*times.cron, &*times.time_zone), ("0 16 * * *", "UTC"));
    }

    #[test]
    fn a_schedule_is_times_or_off_and_nothing_else() {
        let with = |schedule| parse(&format!(r#"{{"repository":"p","schedule":{schedule}}}"#));
        assert_eq!(with(r#""off""#).unwrap().schedule, ScheduleSetting::Off(Off::Off));
        let seoul = with(r#"{"cron":"0 1 * * *","time_zone":"Asia/Seoul"}"#).unwrap();
        assert!(
            matches!(seoul.schedule, ScheduleSetting::Cron(times) if times.time_zone == "Asia/Seoul")
        );
        assert!(with(r#""on""#).is_err());
        assert!(with(r#"{"cron":"0 1 * * *","zone":"UTC"}"#).is_err());
    }

    #[test]
    fn unknown_names_are_refused() {
        assert!(parse(r#"{"repository":"p","brunch":"main"}"#).is_err());
        assert!(parse(r#"{"repository":"p","limits":{"blob_bytes":1}}"#).is_err());
    }

    #[test]
    fn the_fingerprint_is_of_what_chooses_files() {
        let settings = Settings::new(Repository::parse("p").unwrap());
        let print = settings.fingerprint();
        let mut other = settings.clone();
        other.retries = 7;
        assert_eq!(other.fingerprint(), print);
        other.include.push("*.txt".to_owned());
        let with_text = other.fingerprint();
        assert_ne!(with_text, print);
        // A glob that moves from one list to the other is another choice.
        let moved = other.include.pop().unwrap();
        other.exclude.insert(0, moved);
        assert!(![print, with_text].contains(&other.fingerprint()));
    }

    #[test]
    fn relative_paths_are_taken_from_a_folder() {
        let settings = parse(
            r#"{"repository":"./repo","webhook":{"secret":{"file":"hook"}},
                "credentials":{"ssh_key":"/keys/id"},
                "consumers":{"site":{"export":"public"},"index":{"command":["./run","./x"]}}}"#,
        );
        let settings = settings.unwrap().beside(Path::new("/etc/keyward"));
        assert_eq!(settings.repository.path().unwrap(), Path::new("/etc/keyward/./repo"));
        assert_eq!(settings.webhook.unwrap().secret, Secret::File("/etc/keyward/hook".into()));
        assert_eq!(settings.credentials.unwrap().ssh_key.unwrap(), "/keys/id");
        let ConsumerKind::Folder(folder) = &settings.consumers["site"].kind else { panic!() };
        assert_eq!(folder, Path::new("/etc/keyward/public"));
        let ConsumerKind::Command(command) = &settings.consumers["index"].kind else { panic!() };
        assert_eq!(command[..], ["/etc/keyward/./run", "./x"]);
    }
}
