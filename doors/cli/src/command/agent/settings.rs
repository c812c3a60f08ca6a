use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use keyward::agents::{Settings, UserData};
use serde::Serialize;

use super::namespace::InNamespace;
use super::reach::Reach;
use crate::failure::Result;
use crate::output::Output;
use crate::queues::millis;
use crate::ttl;

/// Show or change what holds for the entries of a namespace
///
/// How long entries live when they are set without --ttl, whether reading them past half of their life
/// makes it begin anew, and whether ttl_seconds in their metadata says how long they live. What is not
/// said stays as it is. Entries that are there keep their ends until they are set again.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent settings
  keyward agent settings -n cache:github --honour-ttl-seconds
  keyward agent settings -n sessions --ttl 30m --sliding
  keyward agent settings -n sessions --no-ttl --no-sliding"#)]
pub struct Arguments {
    #[command(flatten)]
    place: InNamespace,
    /// Entries live for this time: 90s, 15m, 2h, 7d, 1h30m
    #[arg(long, value_parser = ttl::parse)]
    ttl: Option<Duration>,
    /// Entries live for ever
    #[arg(long, conflicts_with = "ttl")]
    no_ttl: bool,
    /// An entry that is read past half of its life lives on
    #[arg(long)]
    sliding: bool,
    /// Reading does not prolong an entry's life
    #[arg(long, conflicts_with = "sliding")]
    no_sliding: bool,
    /// ttl_seconds in an entry's metadata says how long it lives
    #[arg(long)]
    honour_ttl_seconds: bool,
    /// ttl_seconds in an entry's metadata says nothing
    #[arg(long, conflicts_with = "honour_ttl_seconds")]
    no_honour_ttl_seconds: bool,
}

impl Arguments {
    fn over(&self, mut settings: Settings) -> Settings {
        if self.ttl.is_some() || self.no_ttl {
            settings.ttl = self.ttl;
        }
        if self.sliding || self.no_sliding {
            settings.sliding = self.sliding;
        }
        if self.honour_ttl_seconds || self.no_honour_ttl_seconds {
            settings.honour_ttl_seconds = self.honour_ttl_seconds;
        }
        settings
    }

    fn says_something(&self) -> bool {
        let flags = [
            self.no_ttl,
            self.sliding,
            self.no_sliding,
            self.honour_ttl_seconds,
            self.no_honour_ttl_seconds,
        ];
        self.ttl.is_some() || flags.contains(&true)
    }
}

#[derive(Serialize)]
struct Shown<'n> {
    namespace: &'n str,
    ttl_ms: Option<u64>,
    sliding: bool,
    honour_ttl_seconds: bool,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let change = arguments.says_something();
    let work = async |user: UserData, output: &mut Output| {
        let namespace = user.use_namespace(&arguments.place.namespace)?;
        let mut settings = namespace.settings().await?;
        if change {
            settings = arguments.over(settings);
            namespace.configure(settings).await?;
        }
        show(namespace.name(), settings, output)
    };
    match change {
        true => reach.to_write(output, work).await,
        false => reach.to_read(output, work).await,
    }
}

fn show(namespace: &str, settings: Settings, output: &mut Output) -> Result {
    let Settings { ttl, sliding, honour_ttl_seconds } = settings;
    if output.json() {
        let ttl_ms = ttl.map(millis);
        return output.write_json(&Shown { namespace, ttl_ms, sliding, honour_ttl_seconds });
    }
    let yes = |it: bool| if it { "yes" } else { "no" };
    let ttl = match ttl.and_then(|ttl| SignedDuration::try_from(ttl).ok()) {
        Some(ttl) => format!("{ttl:#}"),
        None => "for ever".to_owned(),
    };
    writeln!(output, "entries live        {ttl}")?;
    writeln!(output, "reading prolongs    {}", yes(sliding))?;
    writeln!(output, "honour ttl_seconds  {}", yes(honour_ttl_seconds))
}
