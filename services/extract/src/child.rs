use std::io::{self, BufRead, Read, Write};

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::extract;
use crate::wire::{Answer, REQUEST_BYTES_MAX, Request};

/// Files that the child may have open; it opens none.
const FILES_MAX: u64 = 16;

/// The child's side of a [`Sandbox`](crate::Sandbox): reads one document from its input, and writes
/// what it found to its output.
///
/// To be called by a program that does nothing else, before it starts threads: it limits the whole
/// process for ever, in memory, time of the processor, files and sizes of files, and silences
/// panics. Fails if the parent has gone or does not speak as agreed.
pub fn serve_sandboxed() -> io::Result<()> {
    // A panic is answered as an error; nobody reads what would be printed.
    std::panic::set_hook(Box::new(|_| {}));
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    input.by_ref().take(REQUEST_BYTES_MAX).read_until(b'\n', &mut line)?;
    let request: Request = serde_json::from_slice(&line)?;
    limit(&request)?;
    let mut bytes = Vec::new();
    input.take(request.bytes).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).ok() != Some(request.bytes) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let answer = match extract(&bytes, request.format, &request.limits) {
        Ok(extracted) => Answer::Extracted(extracted),
        Err(error) => Answer::Refused(error),
    };
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, &answer)?;
    output.flush()
}

fn limit(request: &Request) -> io::Result<()> {
    let limits = [
        (Resource::As, address_space_bytes().saturating_add(request.memory_bytes_max)),
        (Resource::Cpu, request.cpu_seconds_max),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, FILES_MAX),
    ];
    for (resource, most) in limits {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

/// The address space that the process has already. Allocators may reserve much more than they use,
/// and with a limit below that not even a thread could be started.
fn address_space_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kibibytes = size.and_then(|size| size.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0).saturating_mul(1024)
}
