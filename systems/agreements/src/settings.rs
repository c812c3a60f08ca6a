//! What a workspace is, as a configuration says it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::fmt::serde::unsigned_duration::friendly::compact::required as time;
use keyward_engine::{Clock, Store};
use keyward_extract::{Language, Limits, Sandbox};
use keyward_models::{Models, Settings as ModelSettings};
use serde::{Deserialize, Serialize};

use crate::source::{SourceLimits, SourceSettings};
use crate::{Error, Extractor, Options, Result, Workspace};

/// What a workspace is: where its pages come from, which model is asked, how long things are kept.
///
/// Made by serde, from `[agreements.NAME]` of a configuration. Names that are not known are refused.
/// [`Settings::check`] finds what serde cannot.
///
/// ```
/// use keyward_agreements::Settings;
///
/// let settings: Settings = serde_json::from_str(r#"{"pages":{"folder":"./pages"}}"#)?;
/// assert!(settings.models.is_none());
/// assert!(settings.check().is_ok());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The store's name, for those who open stores by name. A workspace has a store of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Where pages come from.
    pub pages: SourceSettings,
    /// Which model translates and analyses; without one, nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<ModelSettings>,
    /// How policies are compared.
    #[serde(default)]
    pub analysis: AnalysisSettings,
    /// How files are taken apart.
    #[serde(default)]
    pub extraction: ExtractionSettings,
    /// How long after its death a process is taken over.
    #[serde(default = "two_minutes", with = "time")]
    pub lease: Duration,
    /// How long finished jobs are kept.
    #[serde(default = "a_day", with = "time")]
    pub retention: Duration,
    /// The shortest time between two purges of everything.
    #[serde(default = "a_day", with = "time")]
    pub purge_interval: Duration,
    /// How many tasks a server works on at the same time.
    #[serde(default = "four")]
    pub workers: usize,
}

/// How policies are compared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnalysisSettings {
    /// The language in which they are compared; by default the one each was written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// Whether a page with stale issues is analysed again without being asked.
    pub again: bool,
}

/// How files are taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExtractionSettings {
    /// The longest time for one file.
    #[serde(with = "time")]
    pub time_max: Duration,
    /// The most memory for one file, in bytes.
    pub memory_bytes_max: u64,
    /// The most pages of a file.
    pub pages_max: u32,
}

impl Default for ExtractionSettings {
    fn default() -> Self {
        Self {
            time_max: Duration::from_secs(60),
            memory_bytes_max: 512 << 20,
            pages_max: Limits::default().pages_max,
        }
    }
}

const LEASE_MIN: Duration = Duration::from_secs(1);
const LEASE_MAX: Duration = Duration::from_secs(3_600);
const WORKERS_MAX: usize = 64;

impl Settings {
    /// The same, with paths that are relative taken from a folder: that of the configuration.
    #[must_use]
    pub fn beside(mut self, folder: &Path) -> Self {
        self.pages = self.pages.beside(folder);
        self.models = self.models.map(|models| models.beside(folder));
        self
    }

    /// Refuses what cannot be worked with, naming what is wrong.
    pub fn check(&self) -> Result<()> {
        if let Err(problems) = self.pages.check() {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(Error::Invalid(format!("pages.{}", problems.join("; pages."))));
        }
        if let Some(models) = &self.models {
            models.check()?;
        }
        if !(LEASE_MIN..=LEASE_MAX).contains(&self.lease) {
            return Err(Error::Invalid("lease: from 1s to 1h".to_owned()));
        }
        if self.retention.is_zero() || self.purge_interval.is_zero() {
            return Err(Error::Invalid("retention and purge_interval: longer than 0s".to_owned()));
        }
        if self.workers == 0 || self.workers > WORKERS_MAX {
            return Err(Error::Invalid(format!("workers: from 1 to {WORKERS_MAX}")));
        }
        Ok(())
    }

    /// The workspace in a store. `sandbox` is the program, with its arguments, that takes files apart
    /// in a process of its own; without one they are in this process. `seed` is where random choices
    /// begin.
    pub fn open(
        &self,
        store: Store,
        clock: Arc<dyn Clock>,
        sandbox: Option<(PathBuf, Vec<String>)>,
        options: Options,
        seed: u64,
    ) -> Result<Workspace> {
        self.check()?;
        let models = self.models.as_ref().map(|models| Models::open(models, seed)).transpose()?;
        self.open_with(store, clock, sandbox, models.map(Arc::new), options)
    }

    /// The same, with models that are made elsewhere.
    pub fn open_with(
        &self,
        store: Store,
        clock: Arc<dyn Clock>,
        sandbox: Option<(PathBuf, Vec<String>)>,
        models: Option<Arc<Models>>,
        options: Options,
    ) -> Result<Workspace> {
        let mut limits = Limits::default();
        limits.pages_max = self.extraction.pages_max;
        let extractor = match sandbox {
            Some((program, arguments)) => {
                let sandbox = Sandbox::new(program)
                    .args(arguments)
                    .limits(limits)
                    .time_max(self.extraction.time_max)
                    .memory_bytes_max(self.extraction.memory_bytes_max);
                Extractor::Sandboxed(sandbox)
            }
            None => Extractor::InProcess(limits),
        };
        let options = Options {
            lease: self.lease,
            retention: self.retention,
            purge_interval: self.purge_interval,
            analysis_language: self.analysis.language,
            analyze_again: self.analysis.again,
            ..options
        };
        let source = self.pages.open(&store, clock.clone(), SourceLimits::default())?;
        Workspace::open(store, clock, &source, extractor, models, options)
    }
}

fn two_minutes() -> Duration {
    Duration::from_secs(120)
}

fn a_day() -> Duration {
    Duration::from_secs(86_400)
}

fn four() -> usize {
    4
}
