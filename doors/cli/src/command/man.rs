use std::fs;
use std::io;
use std::path::PathBuf;

use clap::Args;
use clap_mangen::Man;

use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Print or write the manual
///
/// Prints the page of keyward itself; with --dir writes a page for it and for each command.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward man | man -l -
  keyward man --dir ~/.local/share/man/man1"#)]
pub struct Arguments {
    /// Write all pages into this directory
    #[arg(long)]
    dir: Option<PathBuf>,
}

pub fn run(arguments: Arguments, output: &mut Output) -> Result {
    let pages = pages().map_err(|error| Failure::file("cannot write the manual", &error))?;
    let Some(directory) = arguments.dir else {
        return match pages.first() {
            Some((_, root)) => output.write_all(root),
            None => Ok(()),
        };
    };
    let write = || {
        fs::create_dir_all(&directory)?;
        pages.iter().try_for_each(|(name, page)| fs::write(directory.join(name), page))
    };
    write().map_err(|error| {
        Failure::file(format_args!("cannot write into {}", directory.display()), &error)
    })?;
    writeln!(output, "wrote {} pages into {}", pages.len(), directory.display())
}

/// The pages with their file names; that of keyward itself comes first.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    // The exit codes have a section of their own.
    let mut definition = Cli::definition().after_help(Cli::EXAMPLES).disable_help_subcommand(true);
    definition.build();
    let mut pages = vec![("keyward.1".to_owned(), page(definition.clone())?)];
    pages_below(&definition, "keyward", &mut pages)?;
    Ok(pages)
}

fn pages_below(
    command: &clap::Command,
    name: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let name = format!("{name}-{}", below.get_name());
        pages.push((format!("{name}.1"), page(below.clone().display_name(&name))?));
        pages_below(below, &name, pages)?;
    }
    Ok(())
}

fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(examples) = command.get_after_help() {
        page.extend_from_slice(examples_section(&examples.to_string()).as_bytes());
    }
    page.extend_from_slice(Exit::manual().as_bytes());
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// Examples as the help shows them, line by line. Each is indented, so none begins with a character
/// that would make it a request.
fn examples_section(help: &str) -> String {
    let lines = help.strip_prefix("Examples:\n").unwrap_or(help);
    let lines = lines.replace('\\', "\\e").replace('-', "\\-");
    format!(".SH EXAMPLES\n.nf\n{lines}\n.fi\n")
}
