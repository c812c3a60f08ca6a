//! What serde cannot tell.

use std::fmt;
use std::time::Duration;

use globset::GlobBuilder;
use keyward_key::is_reserved;

use super::{ConsumerKind, Credentials, Settings};
use crate::ScheduleError;

/// Something that is wrong with settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsProblem {
    /// Which setting, as a path: `consumers.site.timeout`.
    pub setting: String,
    /// What is wrong, and what to write instead.
    pub reason: String,
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.reason)
    }
}

const NAME_BYTES_MAX: usize = 64;
const GLOBS_MAX: usize = 100;
const GLOB_BYTES_MAX: usize = 1_000;
const CONSUMERS_MAX: usize = 32;
const FILES_MAX: u64 = 1_000_000;
const BLOB_BYTES_MAX: u64 = 64 << 20;
const RETRIES_MAX: u32 = 1_000;
const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);
const FETCH_TIME_MAX: Duration = Duration::from_secs(6 * 3_600);

impl Settings {
    /// Everything that is wrong with them, all at once.
    pub fn check(&self) -> Result<(), Vec<SettingsProblem>> {
        let mut found = Found::default();
        self.check_files(&mut found);
        self.check_bounds(&mut found);
        self.check_schedule(&mut found);
        self.check_consumers(&mut found);
        if let Some(credentials) = &self.credentials {
            self.check_credentials(credentials, &mut found);
        }
        if found.0.is_empty() { Ok(()) } else { Err(found.0) }
    }

    /// Refuses what cannot name a registry.
    pub fn check_name(name: &str) -> Result<(), SettingsProblem> {
        if is_name(name) {
            return Ok(());
        }
        let setting: String = name.chars().take(NAME_BYTES_MAX).collect();
        Err(SettingsProblem { setting, reason: NAME_HINT.to_owned() })
    }

    fn check_files(&self, found: &mut Found) {
        if self.branch.as_deref().is_some_and(|branch| !is_branch(branch)) {
            found.add("branch", "no branch can have this name; write one such as main");
        }
        let is_odd = |part: &str| matches!(part, "" | "." | "..") || part.contains(['\\', '\0']);
        let folder = self.folder.trim_end_matches('/');
        if !folder.is_empty() && folder.split('/').any(is_odd) {
            found.add("folder", "write a path below the repository's root, such as docs/policies");
        }
        if self.include.is_empty() {
            found.add("include", "nothing would be a policy; write globs such as **/*.md");
        }
        for (name, globs) in [("include", &self.include), ("exclude", &self.exclude)] {
            if globs.len() > GLOBS_MAX {
                found.add(name, format!("has at most {GLOBS_MAX} globs"));
            }
            for glob in globs.iter().take(GLOBS_MAX) {
                let built = GlobBuilder::new(glob).literal_separator(true).build();
                if let Err(error) = built {
                    found.add(name, format!("{glob:?} is no glob: {}", error.kind()));
                } else if glob.len() > GLOB_BYTES_MAX {
                    found.add(name, format!("a glob has at most {GLOB_BYTES_MAX} bytes"));
                }
            }
        }
        if let Some(prefix) = &self.prefix {
            if prefix.is_empty() || prefix.len() > NAME_BYTES_MAX {
                found.add("prefix", format!("has 1 to {NAME_BYTES_MAX} bytes"));
            } else if is_reserved(prefix) {
                found.add(
                    "prefix",
                    format!("{prefix:?} is a word of Keyward's own; choose another"),
                );
            }
        }
    }

    fn check_bounds(&self, found: &mut Found) {
        if self.mass_delete_percent_max > 100 {
            found.add("mass_delete_percent_max", "is a percentage from 0 to 100");
        }
        if !(1..=RETRIES_MAX).contains(&self.retries) {
            found.add("retries", format!("is from 1 to {RETRIES_MAX}"));
        }
        if self.runs_kept < Duration::from_secs(3_600) {
            found.add("runs_kept", "is at least 1h");
        }
        let limits = &self.limits;
        if !(1..=FILES_MAX).contains(&limits.files_max) {
            found.add("limits.files_max", format!("is from 1 to {FILES_MAX}"));
        }
        if !(1..=BLOB_BYTES_MAX).contains(&limits.blob_bytes_max) {
            found.add("limits.blob_bytes_max", format!("is from 1 to {BLOB_BYTES_MAX}"));
        }
        if !(Duration::from_secs(1)..=FETCH_TIME_MAX).contains(&limits.fetch_time_max) {
            found.add("limits.fetch_time_max", "is from 1s to 6h");
        }
    }

    fn check_schedule(&self, found: &mut Found) {
        match self.schedule.schedule() {
            Ok(_) => {}
            Err(error @ ScheduleError::TimeZone(_)) => {
                found.add("schedule.time_zone", error.to_string());
            }
            Err(error) => found.add("schedule.cron", error.to_string()),
        }
    }

    fn check_credentials(&self, credentials: &Credentials, found: &mut Found) {
        let Credentials { token, username, password, ssh_key } = credentials;
        match self.repository.scheme() {
            Some("ssh") if token.is_some() || password.is_some() => {
                found.add("credentials", "ssh goes by keys: give ssh_key, or none for the agent's");
            }
            Some("ssh") => {}
            Some("https" | "http") => {
                if token.is_some() == password.is_some() || ssh_key.is_some() {
                    found.add("credentials", "give a token, or a username and a password");
                } else if password.is_some() && username.is_none() {
                    found.add("credentials.username", "a password goes with a username");
                }
            }
            _ => found.add("credentials", "this repository is opened without any; leave them out"),
        }
    }

    fn check_consumers(&self, found: &mut Found) {
        if self.consumers.len() > CONSUMERS_MAX {
            found.add("consumers", format!("has at most {CONSUMERS_MAX}"));
        }
        for (name, consumer) in &self.consumers {
            let setting = |member: &str| format!("consumers.{name}{member}");
            if !is_name(name) {
                found.add(setting(""), NAME_HINT);
            }
            if !(Duration::from_millis(10)..=TIMEOUT_MAX).contains(&consumer.timeout) {
                found.add(setting(".timeout"), "is from 10ms to 1h");
            }
            match &consumer.kind {
                ConsumerKind::Command(command) if command.first().is_none_or(String::is_empty) => {
                    found.add(setting(".command"), "names a program, then its arguments");
                }
                ConsumerKind::Post { url, .. } => {
                    let is_http = url.starts_with("https://") || url.starts_with("http://");
                    if !is_http || reqwest::Url::parse(url).is_err() {
                        found.add(setting(".post"), "is an address that begins with https://");
                    }
                }
                ConsumerKind::Bucket(bucket) => {
                    let s3 = &bucket.s3;
                    if s3.access_key.is_some() != s3.secret_key.is_some() {
                        found.add(setting(".s3"), "access_key and secret_key go together");
                    }
                    let plain = s3.endpoint.as_deref().is_some_and(|at| at.starts_with("http://"));
                    if plain && !s3.allow_http {
                        let reason = "is without TLS; say allow_http = true if that is meant";
                        found.add(setting(".s3.endpoint"), reason);
                    }
                }
                _ => {}
            }
        }
    }
}

pub(crate) const NAME_HINT: &str = "a name has 1 to 64 letters, digits, - and _, of ASCII";

/// Whether this can be the name of a registry or a consumer.
pub(crate) fn is_name(name: &str) -> bool {
    let is_taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(is_taken)
}

/// What git takes as the name of a branch, a little more narrowly.
fn is_branch(name: &str) -> bool {
    let refused = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    !name.is_empty()
        && name.len() <= 255
        && !name.starts_with(['-', '/'])
        && !name.ends_with(['/', '.'])
        && !name.contains("..")
        && !name.contains("//")
        && !name.contains("@{")
        && !name.ends_with(".lock")
        && !name.contains(refused)
}

#[derive(Default)]
struct Found(Vec<SettingsProblem>);

impl Found {
    fn add(&mut self, setting: impl Into<String>, reason: impl Into<String>) {
        self.0.push(SettingsProblem { setting: setting.into(), reason: reason.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let settings: Settings = serde_json::from_str(text).unwrap();
        let found = settings.check().err().unwrap_or_default();
        found.into_iter().map(|problem| problem.setting).collect()
    }

    #[test]
    fn every_problem_is_told_at_once() {
        let found = problems(
            r#"{"repository":"p","branch":"a..b","folder":"../x","include":["[a"],"retries":0,
                "prefix":"queue","schedule":{"cron":"0 1 * * *","time_zone":"Mars/Olympus"},
                "limits":{"files_max":0},"mass_delete_percent_max":101,
                "consumers":{"a b":{"command":[]}}}"#,
        );
        assert_eq!(
            found,
            [
                "branch",
                "folder",
                "include",
                "prefix",
                "mass_delete_percent_max",
                "retries",
                "limits.files_max",
                "schedule.time_zone",
                "consumers.a b",
                "consumers.a b.command",
            ]
        );
    }

    #[test]
    fn credentials_fit_the_way_to_the_repository() {
        let with = |repository: &str, credentials: &str| {
            problems(&format!(r#"{{"repository":"{repository}","credentials":{credentials}}}"#))
        };
        let (https, ssh) = ("https://example.org/p", "git@example.org:p");
        assert!(with(https, r#"{"token":{"env":"T"}}"#).is_empty());
        assert!(with(https, r#"{"username":"a","password":{"env":"T"}}"#).is_empty());
        assert!(with(ssh, r#"{"ssh_key":"id"}"#).is_empty());
        assert!(!with(https, r#"{"ssh_key":"id"}"#).is_empty());
        assert!(!with(https, r#"{"password":{"env":"T"}}"#).is_empty());
        assert!(!with(ssh, r#"{"token":{"env":"T"}}"#).is_empty());
        assert!(!with("/srv/p", r#"{"token":{"env":"T"}}"#).is_empty());
    }

    #[test]
    fn a_time_that_no_clock_shows_is_refused() {
        let with = |cron: &str| {
            problems(&format!(r#"{{"repository":"p","schedule":{{"cron":"{cron}"}}}}"#))
        };
        assert!(with("0 16 * * *").is_empty());
        for cron in ["61 * * * *", "0 16 * *", "", "0 16 * * * Asia/Seoul", "0 16 * * * *"] {
            assert_eq!(with(cron), ["schedule.cron"], "{cron}");
        }
    }
}
