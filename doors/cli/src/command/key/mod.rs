//! `keyward key`: who may use a server, and for what.

mod create;
mod list;
mod revoke;
mod ring;

use std::sync::Arc;

use clap::{Args, Subcommand};
use keyward::{Code, Store, SystemClock};
use keyward_server::{CONTROL_DEFAULT, KeyError, Keys, control_default};

use self::ring::Ring;

use crate::args::{self, Target};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Make, list and revoke the API keys of a server
///
/// Keys are kept in the control store of a server: --control, else the first of the stores that keyward
/// serve would serve here. They count for every server on that store, at
/// once; none has to be running. With --server they are made through it, which takes a key with
/// admin:* as soon as there is one. As soon as there is a key, servers ask everybody for one.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward key create laptop
  keyward key create ada-phone --user ada --role editor --expires 90d
  keyward key list
  keyward key revoke 4f0a1b2c"#)]
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
}

#[derive(Debug, Subcommand)]
enum Action {
    Create(create::Arguments),
    List(list::Arguments),
    Revoke(revoke::Arguments),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    if let Some(server) = target.server()? {
        let ring = Ring::Served(server.connection()?);
        return match arguments.action {
            Action::Create(arguments) => create::run(arguments, &ring, output).await,
            Action::List(arguments) => list::run(arguments, &ring, output).await,
            Action::Revoke(arguments) => revoke::run(arguments, &ring, output).await,
        };
    }
    let url = control_url(arguments.control.as_deref(), target).await?;
    match arguments.action {
        Action::Create(arguments) => {
            create::run(arguments, &keys(keyward::open(&url).await?), output).await
        }
        Action::List(arguments) => {
            list::run(arguments, &keys(args::open_existing(&url).await?), output).await
        }
        Action::Revoke(arguments) => {
            revoke::run(arguments, &keys(args::open_existing(&url).await?), output).await
        }
    }
}

fn keys(store: Store) -> Ring {
    Ring::Stored(Keys::new(store, Arc::new(SystemClock)))
}

/// Where the control store of a server is that is started with the same options.
pub async fn control_url(control: Option<&str>, target: &Target) -> Result<String> {
    if let Some(url) = control {
        return Ok(url.to_owned());
    }
    let data = target.data_or_store().await?;
    match control_default(&data) {
        Some(store) => Ok(data.url(store)?),
        None if data.schema().stores.is_empty() => target.url(),
        None => Ok(CONTROL_DEFAULT.to_owned()),
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Store(error) => error.into(),
            KeyError::Invalid(message) => Self::invalid(message),
            KeyError::Corrupt { .. } => Self::new(Code::Corrupt, error.to_string())
                .hint("Restore the control store from a backup."),
            KeyError::Contended(_) => {
                Self::new(Code::Contended, error.to_string()).hint("Try again; nothing was done.")
            }
            error => Self::new(Code::Internal, error.to_string()),
        }
    }
}

/// Text of somebody's choice, such that a terminal is not told what to do.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
