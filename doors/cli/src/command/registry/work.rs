use clap::Args;
use futures_util::future::try_join_all;
use tokio::sync::watch;

use crate::failure::{Failure, Result};
use crate::output::{Output, note};
use crate::registries::Reach;
use crate::signals::Signals;

/// Tell consumers of changes, until stopped
///
/// Of one registry or several; a server does the same for those that it is told of. Any number of
/// processes may do it at once. The first Ctrl-C (or SIGTERM) stops it once what is being told is told; a
/// second one ends it at once, and what was under way is told again later.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry work policies
  keyward registry work policies handbook"#)]
pub struct Arguments {
    /// The registries
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let mut signals = Signals::listen()?;
    let mut registries = Vec::new();
    for name in &arguments.names {
        let registry = reach.open(name).await?;
        if registry.settings().consumers.is_empty() {
            return Err(Failure::invalid(format!("the registry {name} has no consumers"))
                .hint(format!("Declare one, as [registries.{name}.consumers.NAME].")));
        }
        registries.push(registry);
    }
    if !output.json() {
        let names = arguments.names.join(", ");
        note(format_args!("telling the consumers of {names} (Ctrl-C stops)"));
    }
    let (stop, stopped) = watch::channel(false);
    let work = registries.iter().map(|registry| {
        let mut stopped = stopped.clone();
        registry.work(async move {
            // The sender stays until the end.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        })
    });
    let mut work = std::pin::pin!(try_join_all(work));
    let json = output.json();
    loop {
        tokio::select! {
            done = &mut work => {
                done?;
                return Ok(());
            }
            _ = signals.next() => {
                if *stopped.borrow() {
                    return Err(Failure::interrupted("interrupted")
                        .hint("What was under way is told again when its lease ends."));
                }
                if !json {
                    note("stopping: waiting for what is being told (Ctrl-C ends it at once)");
                }
                let _ = stop.send(true);
            }
        }
    }
}
