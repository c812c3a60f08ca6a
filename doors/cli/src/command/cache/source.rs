use clap::Args;
use jiff::Timestamp;
use keyward::cache::Source;

/// What a value is made of.
#[derive(Debug, Args)]
pub struct SourceArguments {
    /// The version of what the value is made of: values of any other are stale
    #[arg(long, value_name = "VERSION")]
    source_version: Option<String>,
    /// When what the value is made of was last modified: values of an earlier state are stale
    #[arg(long, value_name = "TIME", conflicts_with = "source_version")]
    modified: Option<Timestamp>,
}

impl SourceArguments {
    pub fn source(&self) -> Source {
        match (&self.source_version, self.modified) {
            (Some(version), _) => Source::version(version),
            (None, Some(modified)) => Source::Modified(modified),
            (None, None) => Source::Constant,
        }
    }
}
