use clap::Args;
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::Result;
use crate::output::Output;

/// Print the completions for a shell
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  source <(keyward completions bash)
  keyward completions zsh > ~/.zfunc/_keyward
  keyward completions fish > ~/.config/fish/completions/keyward.fish"#)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

pub fn run(arguments: Arguments, output: &mut Output) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::definition(), "keyward", &mut script);
    output.write_all(&script)
}
