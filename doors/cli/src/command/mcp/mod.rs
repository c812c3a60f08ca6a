//! `keyward mcp`: stores for agents, by the Model Context Protocol.

mod install;

use clap::{Args, Subcommand};
use keyward::Data;
use keyward_server::serve_mcp;

use super::serve;
use crate::agreements::kept;
use crate::args::Target;
use crate::demo;
use crate::failure::Result;
use crate::output::Output;
use crate::registries::Cache;
use crate::settings::LogForm;
use crate::signals::Signals;

/// Serve stores to one agent, over standard input and output (MCP)
///
/// Opens the stores itself, as the local user: several of these may work on one embedded store at the
/// same time. Without a schema there is one store, called main: -s names it, else it is
/// embedded:./keyward-data. With a schema, its stores and spaces are served. It ends with its input.
///
/// Agents on other machines, and those with a credential of their own, use a server: keyward serve
/// answers them at /mcp.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward mcp -s embedded:./data
  keyward mcp --schema keyward.schema.toml
  keyward mcp install claude-code --schema keyward.schema.toml"#)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Serve a small set of data to look at, in embedded:./keyward-demo unless -s says otherwise
    #[arg(long, conflicts_with = "schema")]
    demo: bool,
    /// What to log, to standard error: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", env = "KEYWARD_LOG_LEVEL", default_value = "warn")]
    log_level: String,
    #[command(flatten)]
    cache: Cache,
    /// Have what the conformance suite of MCP calls
    #[arg(long, hide = true)]
    mcp_conformance: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Install(install::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    if let Some(Command::Install(install)) = arguments.command {
        return install::run(install, target, output);
    }
    target.refuse_server(
        "serving an agent",
        "Have the agent speak to the server itself: its URL with /mcp after it.",
    )?;
    serve::log(LogForm::Text, serve::filter(&arguments.log_level)?, None);
    let data = served(&arguments, target).await?;
    let mut config = target.settings()?.config()?;
    config.mcp.fixtures = arguments.mcp_conformance;
    if arguments.demo {
        config.agreements = demo::workspaces()?;
        demo::fill(&data, &config.agreements).await?;
    } else {
        config.agreements = kept(&target.agreements()?)?;
        config.registries = serve::registered(&target.registries()?, &arguments.cache)?;
    }
    let mut signals = Signals::listen()?;
    let stop = async {
        signals.next().await;
    };
    let (input, answers) = (tokio::io::stdin(), tokio::io::stdout());
    serve_mcp(&config, &data, input, answers, stop).await.map_err(serve::not_started)
}

async fn served(arguments: &Arguments, target: &Target) -> Result<Data> {
    if !arguments.demo {
        return serve::declared(target).await;
    }
    let asked_for = target.store_is_asked_for().then(|| target.url()).transpose()?;
    demo::data(asked_for.as_deref().unwrap_or(demo::STORE_DEFAULT))
}
