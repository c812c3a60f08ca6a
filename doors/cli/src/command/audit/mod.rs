//! `keyward audit`: who changed what through a server.

mod export;
mod log;

use clap::{Args, Subcommand};
use keyward_server::AuditLog;

use self::log::Log;
use crate::args::{self, Target};
use crate::failure::Result;
use crate::output::Output;

/// Read the audit log of a server
///
/// The log is read from --audit-store, else from the server's control store: --control, else the first of
/// the stores that keyward serve would serve here. With --server, the server is asked for it.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward audit export > audit.jsonl"#)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
    /// The control store of the server, if it is not one of those that it serves
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "KEYWARD_CONTROL",
        hide_env_values = true
    )]
    control: Option<String>,
    /// The store of the audit log, if it is not the control store
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "KEYWARD_AUDIT_STORE",
        hide_env_values = true
    )]
    audit_store: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Action {
    Export(export::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let log = match target.server()? {
        Some(server) => Log::Served(server.connection()?),
        None => {
            let named = arguments.audit_store.as_deref().or(arguments.control.as_deref());
            let url = super::key::control_url(named, target).await?;
            Log::Stored(AuditLog::new(args::open_existing(&url).await?))
        }
    };
    match arguments.action {
        Action::Export(arguments) => export::run(arguments, &log, output).await,
    }
}
