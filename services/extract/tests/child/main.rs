//! The child of the sandbox in tests: it reads a document, or misbehaves as its argument says.

use std::io;

fn main() -> io::Result<()> {
    match std::env::args().nth(1).as_deref() {
        None => keyward_extract::serve_sandboxed(),
        Some("loop") => loop {
            std::thread::park();
        },
        Some("babble") => loop {
            io::Write::write_all(&mut io::stdout(), &[b'x'; 4096])?;
        },
        Some("fail") => Err(io::Error::other("something is missing")),
        Some("silence") => Ok(()),
        Some(other) => Err(io::Error::other(format!("unknown argument {other}"))),
    }
}
