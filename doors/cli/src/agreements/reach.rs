//! Which workspace is meant, and how it is opened.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use keyward::agreements::source::SourceSettings;
use keyward::agreements::{Options, Settings, Workspace};
use keyward::{Code, Data, Store, SystemClock};
use keyward_server::WorkspaceConfig;

use super::{Desk, Here, There, sandbox};
use crate::args::{self, Target};
use crate::config::Agreements;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, note};
use crate::queues::worker;
use crate::store_choice;

/// Which workspace.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Workspaces")]
pub struct Named {
    /// The workspace, by its name in the config file or in the server [default: the only one]
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "folder")]
    workspace: Option<String>,
    /// A folder with a directory for each page, which no config file need declare
    #[arg(long, global = true, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// What a workspace is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// To look at what is there: a store that is not there is empty, and is not made.
    Looking,
    /// To make or change something.
    Working,
}

/// What a workspace is called that nobody gave a name: as in what a config file would say of it.
const UNNAMED: &str = "NAME";

pub async fn open(target: &Target, named: &Named, purpose: Use, output: &Output) -> Result<Desk> {
    if named.folder.is_none()
        && let Some(server) = target.server()?
    {
        return Ok(Desk::There(There::open(&server, named.workspace.as_deref()).await?));
    }
    let (name, settings) = match &named.folder {
        Some(folder) => (UNNAMED.to_owned(), settings_of(SourceSettings::Folder(folder.clone()))?),
        None => declared(target.agreements()?, named.workspace.as_deref())?,
    };
    let chosen =
        store_choice::of_system(target, settings.store.as_deref(), Data::agreements_store).await;
    let (data, place) = chosen.map_err(|failure| match named.folder {
        Some(_) => failure,
        None => failure.at(format_args!("agreements.{name}")),
    })?;
    let store = match purpose {
        Use::Working => data.records(&place).await?.store().clone(),
        Use::Looking => match data.existing_records(&place).await? {
            Some(records) => records.store().clone(),
            None => {
                if !output.json() {
                    let missing = args::no_store(&data.url(&place)?);
                    note(format_args!("{missing}; keyward policy get makes one"));
                }
                keyward::open("memory:").await?
            }
        },
    };
    let workspace = workspace(&settings, store)?;
    Ok(Desk::Here(Here::new(name, workspace, settings.workers)))
}

/// What a workspace is of which nothing is said but where its pages come from.
pub fn settings_of(pages: SourceSettings) -> Result<Settings> {
    let settings = serde_json::to_value(pages)
        .and_then(|pages| serde_json::from_value(serde_json::json!({ "pages": pages })));
    settings.map_err(|error| Failure::invalid(format!("pages cannot be there: {error}")))
}

/// The workspaces that a server keeps.
pub fn kept(agreements: &Agreements) -> Result<Vec<WorkspaceConfig>> {
    let sandbox = sandbox()?;
    let declared = agreements.declared.iter();
    let kept = declared.map(|(name, settings)| WorkspaceConfig {
        name: name.clone(),
        settings: settings.clone(),
        models: None,
        sandbox: Some(sandbox.clone()),
    });
    Ok(kept.collect())
}

fn workspace(settings: &Settings, store: Store) -> Result<Workspace> {
    let seed = getrandom::u64().map_err(|error| {
        Failure::new(Code::Internal, format!("there is no randomness: {error}"))
    })?;
    let options = Options { who: worker(), ..Options::default() };
    Ok(settings.open(store, Arc::new(SystemClock), Some(sandbox()?), options, seed)?)
}

/// A workspace that a config file declares: the one that is named, else the only one.
fn declared(agreements: Agreements, named: Option<&str>) -> Result<(String, Settings)> {
    let Agreements { mut declared, file } = agreements;
    let known: Vec<&str> = declared.keys().map(String::as_str).collect();
    let name = match (named, known.as_slice()) {
        (Some(name), known) if known.contains(&name) => name.to_owned(),
        (None, [only]) => (*only).to_owned(),
        (named, known) => return Err(undeclared(named, known, file)),
    };
    match declared.remove(&name) {
        Some(settings) => Ok((name, settings)),
        None => Err(undeclared(Some(&name), &[], file)),
    }
}

fn undeclared(named: Option<&str>, known: &[&str], file: Option<PathBuf>) -> Failure {
    let place = file.map_or_else(|| "keyward.toml".to_owned(), |file| file.display().to_string());
    let message = match (named, known) {
        (None, []) => "no workspace is declared".to_owned(),
        (None, known) => format!("it is not said which workspace: {}", known.join(", ")),
        (Some(name), []) => format!("nothing says what the workspace {name} is"),
        (Some(name), known) => {
            format!("{place} declares no workspace {name}; it declares {}", known.join(", "))
        }
    };
    let hint = match (named, known) {
        (None, [_, ..]) => "Give --workspace NAME.".to_owned(),
        (named, _) => format!(
            "Give --folder DIR, or write into {place}:\n  [agreements.{}]\n  pages = {{ folder = \"…\" }}",
            named.unwrap_or("NAME")
        ),
    };
    Failure::new(Code::UnknownWorkspace, message).exit(Exit::Invalid).hint(hint)
}
