//! `keyward`: stores by URL from a shell.

mod agreements;
mod args;
mod batch;
mod command;
mod config;
mod confirm;
mod demo;
mod destination;
#[cfg(test)]
mod documented;
mod exit;
mod failure;
mod guard;
mod input;
mod interrupt;
mod line;
mod output;
mod pages;
mod pretty;
mod progress;
mod queues;
mod registries;
mod served;
mod settings;
mod signals;
mod store_choice;
mod table;
mod ttl;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use keyward::Code;

use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// How long a command waits at its end for values on their way to a value store. The next command sends what is left.
const PUSHES_TIME_MAX: Duration = Duration::from_secs(10);

/// A server allocates for each request, on one thread, and frees on another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The process that takes one file apart has no arguments, configuration or threads of its own.
    if let Some(code) = agreements::serve() {
        return code;
    }
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(usage(&error).code()),
    };
    let mut output = Output::stdout(cli.form());
    let failed = run(cli, &mut output).err();
    let code = failed.map_or(Exit::Done.code(), |failure| {
        // Where errors cannot be told, the exit code still speaks.
        let _ = failure.tell(&mut io::stderr(), output.json());
        failure.code()
    });
    ExitCode::from(code)
}

fn run(cli: Cli, output: &mut Output) -> Result {
    // Commands run on this thread.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = cli.command.threads() {
        runtime.worker_threads(threads);
    }
    let runtime =
        runtime.enable_all().build().map_err(|error| Failure::file("cannot start", &error))?;
    let done = runtime.block_on(cli.command.run(&cli.target, output));
    // What a command found before it failed still counts.
    let done = done.and(output.flush());
    // What was committed reaches a value store with a coordinator before the process ends, if that answers in time.
    runtime.block_on(keyward::finish_pushes(PUSHES_TIME_MAX));
    // A thread that still waits for standard input would hold up the end.
    runtime.shutdown_background();
    done
}

/// Shows what clap has to say: the help, the version, or what is wrong with the arguments.
fn usage(error: &clap::Error) -> Exit {
    let json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr()
        && json
        && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        let text = error.render().to_string();
        let (message, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let failure = Failure::new(Code::Usage, message).hint(rest.trim());
        let _ = failure.tell(&mut io::stderr(), true);
    } else {
        let _ = error.print();
    }
    if error.use_stderr() { Exit::Invalid } else { Exit::Done }
}
