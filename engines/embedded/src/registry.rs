//! The stores this process has open. LMDB must not open one environment twice in a process, so a
//! second opener shares the first one's.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use keyward_engine::{Clock, Result};

use crate::Options;
use crate::directory::{Gate, open_elsewhere};
use crate::engine::Shared;
use crate::environment::Environment;
use crate::error::{at, misplaced};

/// Which directory it is, whatever it is called.
type Identity = (u64, u64);

static OPENED: Mutex<BTreeMap<Identity, Opened>> = Mutex::new(BTreeMap::new());

struct Opened {
    path: PathBuf,
    shared: Weak<Shared>,
}

/// Opens a store, or shares it if this process already has it open.
pub(crate) fn open(
    directory: &Path,
    options: Options,
    clock: Box<dyn Clock>,
) -> Result<Arc<Shared>> {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(|_, opened| opened.shared.strong_count() > 0);
    let known = identity(directory).ok().and_then(|identity| opened.get(&identity));
    if let Some(shared) = known.and_then(|opened| opened.shared.upgrade()) {
        if shared.core.options != options {
            return Err(misplaced(format!(
                "{} is already open in this process with other options ({:?})",
                directory.display(),
                shared.core.options
            )));
        }
        return Ok(shared);
    }

    let gate = Gate::lock(directory)?;
    if opened.values().any(|opened| opened.path == gate.path()) {
        return Err(misplaced(format!(
            "{} was removed or replaced while this process had the store in it open; close that \
             one first",
            directory.display()
        )));
    }
    wait_until_closed(gate.path());
    if gate.is_created()? {
        gate.settle()?;
    } else {
        gate.create(|place| Environment::create(place, &options))?;
    }
    gate.prepare()?;
    let (user, alone) = gate.enter()?;
    let environment = Environment::open(gate.path(), &options, alone)?;
    let shared = Arc::new(Shared::start(environment, user, options, clock)?);
    let identity = identity(gate.path()).map_err(at("cannot look at", directory))?;
    let path = gate.path().to_owned();
    opened.insert(identity, Opened { path, shared: Arc::downgrade(&shared) });
    Ok(shared)
}

/// Waits until the environment of a directory is closed, if this process was closing it: the last
/// handle may have been dropped only just now. Refuses if a handle is alive.
pub(crate) fn wait_if_closing(directory: &Path) -> Result<()> {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(|_, opened| opened.shared.strong_count() > 0);
    if opened.values().any(|opened| opened.path == directory) {
        return Err(open_elsewhere(directory));
    }
    wait_until_closed(directory);
    Ok(())
}

fn wait_until_closed(path: &Path) {
    if let Some(closing) = heed::env_closing_event(path) {
        closing.wait();
    }
}

fn identity(directory: &Path) -> io::Result<Identity> {
    let found = fs::metadata(directory)?;
    Ok((found.dev(), found.ino()))
}
