use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use keyward::Json;
use keyward::cache::{Cached, Fetch};

use super::source::SourceArguments;
use super::{get, program};
use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::guard::Guard;
use crate::output::Output;
use crate::signals::Signals;
use crate::ttl;

/// Print what is cached, or run a command to make it
///
/// If the key holds a fresh value, prints it. Else one of all who ask at the same time, on all
/// machines that share the store, runs its command and caches what it prints, which must be JSON (or
/// text, with --raw); the others wait and print the same. If the command fails, nothing is cached,
/// all are told, and it is not tried again for a second, then two, up to a minute, unless --retry
/// asks for it. If this process dies, another one takes over after --lease.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward cache run page7:text --source-version sha-1 --raw -- pdftotext page7.pdf -
  keyward cache run rates --ttl 1h -- curl -sf https://example.org/rates.json
  keyward cache run page7:text:fr --depends-on page7:text --source-version sha-1 -- ./translate fr"#)]
pub struct Arguments {
    /// The key, for example page7:text
    key: String,
    #[command(flatten)]
    source: SourceArguments,
    /// How long the value is good; without it, until its source changes
    #[arg(long, value_name = "DURATION", value_parser = ttl::parse)]
    ttl: Option<Duration>,
    /// Another cached key that the value is made from: dropped with it
    #[arg(long, value_name = "KEY")]
    depends_on: Vec<String>,
    /// How long after its death a process that computes is taken over
    #[arg(long, value_name = "DURATION", value_parser = ttl::parse, default_value = "30s")]
    lease: Duration,
    /// How long to wait for others who compute it
    #[arg(long, value_name = "DURATION", value_parser = ttl::parse, default_value = "5m")]
    timeout: Duration,
    /// Compute it at once, although it failed a short while ago
    #[arg(long)]
    retry: bool,
    /// The value is text: what the command prints, as it is
    #[arg(long)]
    raw: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let key = crate::command::key(&arguments.key)?;
    let mut fetch =
        Fetch::of(arguments.source.source()).lease(arguments.lease).wait_max(arguments.timeout);
    fetch.ttl = arguments.ttl;
    for parent in &arguments.depends_on {
        fetch = fetch.depends_on(crate::command::key(parent)?);
    }
    let mut guard = Guard::new(target, false).await?;
    guard.admit(&key)?;
    let store = target.open().await?;
    guard.over(store.clone()).await?;
    guard.admit(&key)?;
    let cache = super::cache(store)?;
    if arguments.retry {
        cache.retry(&key).await?;
    }
    let mut signals = Signals::listen()?;
    let compute = || make(&arguments, key.to_string());
    let cached = tokio::select! {
        cached = cache.get_or_compute(&key, &fetch, compute) => Ok(cached),
        signal = signals.next() => Err(signal),
    };
    // Others should not have to wait until the lease ends.
    cache.locks().settled().await;
    let cached = cached
        .map_err(|signal| Failure::passed(signal.exit_code(), "interrupted; nothing was cached"))?;
    print(&cached?, arguments.raw, &key, output)
}

async fn make(arguments: &Arguments, key: String) -> Result<Json, String> {
    let (program, rest) = arguments.command.split_first().ok_or("no command")?;
    let (status, printed) = program::run(program, rest, ("KEYWARD_CACHE_KEY", &key)).await?;
    if !status.success() {
        return Err(program::ending(status));
    }
    let json = if arguments.raw {
        let text = String::from_utf8(printed).map_err(|_| "it printed no UTF-8")?;
        Json::from_value(&text)
    } else {
        Json::parse(printed)
    };
    json.map_err(|error| format!("what it printed is no JSON ({error}); --raw takes text"))
}

fn print(cached: &Cached, raw: bool, key: &keyward::Key, output: &mut Output) -> Result {
    if output.json() {
        return get::print(key, cached, output);
    }
    match serde_json::from_slice::<String>(cached.value.as_bytes()) {
        Ok(text) if raw => output.write_all(text.as_bytes()),
        _ => writeln!(output, "{}", cached.value),
    }
}
