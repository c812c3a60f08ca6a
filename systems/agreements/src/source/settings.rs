//! Where a workspace's pages come from, as an operator says it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use keyward_engine::{Clock, Store};
use serde::{Deserialize, Serialize};

use super::{
    Confluence, ConfluenceOptions, ConfluenceSettings, Folder, FolderOptions, Source, SourceLimits,
    UploadOptions, Uploads,
};
use crate::Result;

/// Where pages come from: exactly one of `folder = "path"`, `uploads = true` and `confluence = { … }`.
///
/// ```
/// use keyward_agreements::source::SourceSettings;
///
/// let settings: SourceSettings = serde_json::from_str(r#"{"folder":"agreements"}"#)?;
/// assert!(settings.check().is_ok());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum SourceSettings {
    /// A folder, with a directory for each page.
    Folder(PathBuf),
    /// What people put here.
    Uploads(bool),
    /// Confluence Cloud.
    Confluence(ConfluenceSettings),
}

/// Something that is wrong with settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceProblem {
    /// Which setting, as a path: `confluence.base_url`.
    pub setting: String,
    /// What is wrong, and what to write instead.
    pub reason: String,
}

impl SourceProblem {
    pub(super) fn new(setting: &str, reason: &str) -> Self {
        Self { setting: setting.to_owned(), reason: reason.to_owned() }
    }
}

impl fmt::Display for SourceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.reason)
    }
}

impl SourceSettings {
    /// The same, for settings that stand in a file of this folder: relative paths begin there.
    #[must_use]
    pub fn beside(mut self, folder: &Path) -> Self {
        match &mut self {
            Self::Folder(path) => *path = folder.join(&*path),
            Self::Uploads(_) => {}
            Self::Confluence(settings) => settings.beside(folder),
        }
        self
    }

    /// Everything that is wrong with them, all at once.
    pub fn check(&self) -> Result<(), Vec<SourceProblem>> {
        let mut found = Vec::new();
        match self {
            Self::Folder(path) if path.as_os_str().is_empty() => {
                found.push(SourceProblem::new("folder", "write the path of a folder"));
            }
            Self::Uploads(false) => {
                let reason = "write true, or where else pages come from";
                found.push(SourceProblem::new("uploads", reason));
            }
            Self::Folder(_) | Self::Uploads(true) => {}
            Self::Confluence(settings) => settings.check(&mut found),
        }
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    /// Sets up the source. Nothing is read yet: a folder or a server that is away may come back.
    pub fn open(&self, store: &Store, clock: impl Clock, limits: SourceLimits) -> Result<Opened> {
        if let Err(problems) = self.check() {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(super::refused(problems.join("; ")));
        }
        Ok(match self {
            Self::Folder(root) => {
                let options = FolderOptions { limits, ..FolderOptions::default() };
                Opened::Folder(Arc::new(Folder::new(root, options)))
            }
            Self::Uploads(_) => {
                let options = UploadOptions { limits, ..UploadOptions::default() };
                Opened::Uploads(Arc::new(Uploads::new(store.clone(), clock, options)?))
            }
            Self::Confluence(settings) => {
                let options = ConfluenceOptions { limits, ..ConfluenceOptions::default() };
                Opened::Confluence(Arc::new(Confluence::new(settings.clone(), options)?))
            }
        })
    }
}

/// A source that was set up.
#[derive(Debug, Clone)]
pub enum Opened {
    /// A folder.
    Folder(Arc<Folder>),
    /// What people put here.
    Uploads(Arc<Uploads>),
    /// Confluence Cloud.
    Confluence(Arc<Confluence>),
}

impl Opened {
    /// Where pages come from, whichever it is.
    pub fn source(&self) -> Arc<dyn Source> {
        match self {
            Self::Folder(folder) => folder.clone(),
            Self::Uploads(uploads) => uploads.clone(),
            Self::Confluence(confluence) => confluence.clone(),
        }
    }

    /// Where people put pages, if they do.
    pub fn uploads(&self) -> Option<&Arc<Uploads>> {
        match self {
            Self::Uploads(uploads) => Some(uploads),
            Self::Folder(_) | Self::Confluence(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SourceSettings, serde_json::Error> {
        serde_json::from_str(text)
    }

    fn confluence(change: impl Fn(&mut ConfluenceSettings)) -> Vec<String> {
        let text = r#"{"confluence":{"base_url":"https://a.example","token":{"env":"T"}}}"#;
        let mut settings = parse(text).unwrap();
        if let SourceSettings::Confluence(settings) = &mut settings {
            change(settings);
        }
        let problems = settings.check().err().unwrap_or_default();
        problems.into_iter().map(|problem| problem.setting).collect()
    }

    #[test]
    fn exactly_one_source_is_given() {
        assert!(parse(r#"{"uploads":true}"#).unwrap().check().is_ok());
        assert!(parse(r#"{"uploads":false}"#).unwrap().check().is_err());
        assert!(parse(r#"{"folder":""}"#).unwrap().check().is_err());
        for refused in [r#"{}"#, r#"{"folder":"a","uploads":true}"#, r#"{"drive":"a"}"#] {
            assert!(parse(refused).is_err(), "{refused}");
        }
        let unknown = r#"{"confluence":{"base_url":"x","token":{"env":"T"},"password":"p"}}"#;
        assert!(parse(unknown).is_err());
    }

    #[test]
    fn paths_begin_beside_the_settings() {
        let beside = |text: &str| parse(text).unwrap().beside(Path::new("/etc/keyward"));
        let folder = SourceSettings::Folder("/etc/keyward/pages".into());
        assert_eq!(beside(r#"{"folder":"pages"}"#), folder);
        let token = r#"{"confluence":{"base_url":"https://a.example","token":{"file":"t"}}}"#;
        assert!(format!("{:?}", beside(token)).contains("/etc/keyward/t"));
    }

    #[test]
    fn settings_of_confluence_are_checked() {
        assert!(confluence(|_| {}).is_empty());
        for url in ["http://127.0.0.1:1", "http://localhost", "http://[::1]:80/", "https://x/wiki"]
        {
            assert!(confluence(|it| it.base_url = url.into()).is_empty(), "{url}");
        }
        for url in
            ["", "a", "http://a.example", "ftp://a", "https://u:p@a", "https://a/?q", "data:x"]
        {
            assert_eq!(confluence(|it| it.base_url = url.into()), ["confluence.base_url"], "{url}");
        }
        assert_eq!(confluence(|it| it.email = Some("me".into())), ["confluence.email"]);
        assert_eq!(confluence(|it| it.space = Some("a/b".into())), ["confluence.space"]);
        assert_eq!(confluence(|it| it.root_page = Some("Home".into())), ["confluence.root_page"]);
    }
}
