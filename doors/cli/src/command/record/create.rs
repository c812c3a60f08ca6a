use clap::Args;
use keyward::Code;
use keyward::records::Precondition;

use super::address::AddressAndValue;
use super::put::{Terms, put};
use super::reach::Reach;
use crate::failure::Result;
use crate::output::Output;

/// Make a record that must not exist
///
/// Like put, but if the record is there already nothing is written, and the command exits with 3.
#[derive(Debug, Args)]
#[command(
    override_usage = "keyward record create [OPTIONS] <SPACE> [VAR=VALUE]... <JSON>",
    after_help = r#"Examples:
  keyward record create users '{"email":"ada@example.org","name":"Ada"}' --as ada
  keyward record create notes user=ada note=n1 @note.json"#
)]
pub struct Arguments {
    #[command(flatten)]
    target: AddressAndValue,
    #[command(flatten)]
    terms: Terms,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let put = put(arguments.target, arguments.terms, Precondition::Absent, reach, output);
    // The only condition of a creation is that nothing is there.
    put.await.map_err(|failure| match failure.is(Code::PreconditionFailed) {
        true => failure.recoded(Code::Exists),
        false => failure,
    })
}
