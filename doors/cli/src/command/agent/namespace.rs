//! Which namespace.

use clap::Args;

/// Which namespace.
#[derive(Debug, Args)]
pub struct InNamespace {
    /// The namespace: any text, such as files:apache/repo
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    pub namespace: String,
}
