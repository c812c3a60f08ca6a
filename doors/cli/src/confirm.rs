//! Commands that show a plan with `--plan`, carry it out with `--apply`, and ask a person without either.

use std::fmt;
use std::io::{self, BufRead, IsTerminal, Write};

use keyward::Code;

use crate::failure::{Failure, Result};
use crate::output::Output;

/// Neither `--plan` nor `--apply` was passed, and there is nobody to ask.
pub fn unsaid() -> Failure {
    Failure::invalid("pass --plan to preview or --apply to do it")
        .hint("Add --plan to see what would be done, or --apply to do it.")
}

/// Whether there is somebody to ask.
pub fn can_ask(output: &Output) -> bool {
    !output.json() && io::stderr().is_terminal() && io::stdin().is_terminal()
}

/// Asks a question on the terminal. Anything but a yes is a failure.
pub fn ask(question: impl fmt::Display) -> Result {
    let (mut stderr, mut answer) = (io::stderr(), String::new());
    let asked = write!(stderr, "{question} [y/N] ")
        .and_then(|()| stderr.flush())
        .and_then(|()| io::stdin().lock().read_line(&mut answer));
    match asked {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        Ok(_) => Err(Failure::new(Code::Unconfirmed, "you did not say yes")
            .hint("Nothing was changed; --apply does not ask.")),
        Err(error) => Err(Failure::file("cannot ask on this terminal", &error)),
    }
}
