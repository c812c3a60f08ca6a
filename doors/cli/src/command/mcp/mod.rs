//! `keyward mcp`: stores for agents, by the Model Context Protocol.

mod install;

use clap::{Args, Subcommand};
use keyward::Data;
use keyward_server::{LocalUser, serve_mcp};

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
/// Opens the stores itself: several of these may work on one embedded store at the same time. The agent works for
/// one user, --user: of records and agents' entries it reaches what is theirs and what is shared. Locks, queues,
/// jobs, registries and workspaces are the store's, and it uses them all. The stores and spaces of the schema
/// are served; without a schema it is one store, called main. Where they are is found as by every command
/// (see keyward --help). It ends with its input.
///
/// Agents on other machines, and those with a credential of their own, use a server: keyward serve
/// answers them at /mcp.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward mcp -s embedded:./data
  keyward mcp --schema keyward.schema.toml --user ada
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
    whom: Whom,
    #[command(flatten)]
    cache: Cache,
    /// Have what the conformance suite of MCP calls
    #[arg(long, hide = true)]
    mcp_conformance: bool,
}

/// Whom the agent works for.
#[derive(Debug, Clone, Args)]
pub struct Whom {
    /// The user whom the agent works for [default: local]
    #[arg(long, global = true, value_name = "USER", value_parser = user)]
    user: Option<String>,
    /// A role that the user has; may be repeated. All roles of the schema, if none is given
    #[arg(long = "role", global = true, value_name = "ROLE")]
    roles: Vec<String>,
}

impl Whom {
    /// As the server knows them.
    fn local_user(&self) -> LocalUser {
        let all = LocalUser::default();
        LocalUser {
            name: self.user.clone().unwrap_or(all.name),
            roles: (!self.roles.is_empty()).then(|| self.roles.clone()),
        }
    }

    /// Whether anything is said of them.
    fn is_given(&self) -> bool {
        self.user.is_some() || !self.roles.is_empty()
    }

    /// What was said of them, as arguments once more.
    fn arguments(&self) -> impl Iterator<Item = String> {
        let user = self.user.iter().map(|user| ("--user", user));
        let roles = self.roles.iter().map(|role| ("--role", role));
        user.chain(roles).flat_map(|(name, value)| [name.to_owned(), value.clone()])
    }
}

/// The longest id of a user.
const USER_BYTES_MAX: usize = 256;

fn user(text: &str) -> Result<String, String> {
    match (1..=USER_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err(format!("a user has 1 to {USER_BYTES_MAX} bytes and no control characters")),
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    Install(install::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    if let Some(Command::Install(install)) = arguments.command {
        return install::run(install, &arguments.whom, target, output);
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
    let user = arguments.whom.local_user();
    serve_mcp(&config, &data, &user, input, answers, stop).await.map_err(serve::not_started)
}

async fn served(arguments: &Arguments, target: &Target) -> Result<Data> {
    if !arguments.demo {
        return target.data_or_store().await;
    }
    let asked_for = target.store_is_asked_for().then(|| target.url()).transpose()?;
    demo::data(asked_for.as_deref().unwrap_or(demo::STORE_DEFAULT))
}
