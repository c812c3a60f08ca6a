//! This program once more, to take files apart in a process of its own.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::exit::Exit;
use crate::failure::{Failure, Result};

/// What this program is called with for that. It is no command: nobody types it.
const SANDBOX: &str = "extract-child";

/// The program to start, and its arguments.
pub fn sandbox() -> Result<(PathBuf, Vec<String>)> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::file("cannot find the program itself", &error))?;
    Ok((program, vec![SANDBOX.to_owned()]))
}

/// Is that process, if it was called so. To be asked before anything else is set up.
pub fn serve() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != SANDBOX || arguments.next().is_some() {
        return None;
    }
    let served: io::Result<()> = keyward::extract::serve_sandboxed();
    Some(match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::output::note(error);
            ExitCode::from(Exit::Invalid.code())
        }
    })
}
