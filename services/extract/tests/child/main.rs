//! The child of the sandbox in tests: it reads a document, or misbehaves as its argument says.

use std::io;

fn main() -> io::Result<()> {
    match std::env::args().nth(1).as_deref() {
        None => keyward_extract::serve_sandboxed(),
        Some("reserve") => {
            // As an allocator does that takes address space in advance.
            let reserved = std::hint::black_box(Vec::<u8>::with_capacity(1 << 30));
            let outcome = keyward_extract::serve_sandboxed();
            drop(std::hint::black_box(reserved));
            outcome
        }
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
