//! `keyward policy`: policies as text.

use clap::{Args, Subcommand};
use keyward::agreements::{PageId, SourceId};
use keyward::extract::{Language, sanitized_html};

use super::page::{page_id, source_id};
use crate::agreements::{Desk, Named, Use};
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Read policies, in the language they were written in or in another one
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward policy get supply-2026 terms.pdf --folder ./agreements
  keyward policy get supply-2026 terms.pdf --language fr"#)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    named: Named,
}

#[derive(Debug, Subcommand)]
enum Action {
    Get(Get),
}

/// Print a policy as Markdown
///
/// A file is read once, and translated once into each language, for everybody who asks for it: several
/// commands at once wait for each other. What was made of an older file is never printed. With --json the
/// document as it is kept, with what a model made of it.
///
/// With --redo it is read or translated again, also if that was done: for a text that turned out to be wrong.
/// Other translations are kept, unless the original comes out with another text.
///
/// Translating needs a model: [agreements.NAME.models] in the config file.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward policy get supply-2026 terms.pdf
  keyward policy get supply-2026 terms.pdf --language fr > terms.fr.md
  keyward policy get supply-2026 terms.pdf --language fr --redo
  keyward policy get supply-2026 terms.pdf --html > terms.html
  keyward policy get supply-2026 terms.pdf --json | jq -r .title"#)]
pub struct Get {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
    /// The policy
    #[arg(value_parser = source_id)]
    source: SourceId,
    /// In this language, by its code of ISO 639-1, such as fr [default: the one it was written in]
    #[arg(long, value_name = "CODE", value_parser = language)]
    language: Option<Language>,
    /// Read or translate it again, also if it is there
    #[arg(long)]
    redo: bool,
    /// As HTML that is safe to show
    #[arg(long, conflicts_with = "json")]
    html: bool,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let Arguments { action: Action::Get(get), named } = arguments;
    let mut desk = Desk::open(target, &named, Use::Working, output).await?;
    let done = show(get, &mut desk, output).await;
    done.and(desk.leave(output).await)
}

async fn show(get: Get, desk: &mut Desk, output: &mut Output) -> Result {
    let Get { page, source, language, redo, html } = get;
    let document = match redo {
        true => desk.redo_policy(&page, &source, language, output).await?,
        false => desk.policy(&page, &source, language, output).await?,
    };
    if output.json() {
        return output.write_json(&document);
    }
    let text = match html {
        true => sanitized_html(&document.content),
        false => document.content,
    };
    output.write_all(text.as_bytes())?;
    match text.ends_with('\n') {
        true => Ok(()),
        false => writeln!(output),
    }
}

/// A language as an argument.
fn language(text: &str) -> Result<Language, String> {
    Language::parse(text).ok_or_else(|| format!("{text:?} is no code of ISO 639-1, such as fr"))
}
