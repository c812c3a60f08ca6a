//! The stores this process has open. LMDB must not open one environment twice in a process, so a
//! second opener shares the first one's.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use keyward_engine::{Clock, Error, ErrorKind, Result};

use crate::Options;
use crate::directory::{Gate, open_elsewhere};
use crate::engine::{Core, Shared};
use crate::environment::Environment;
use crate::error::{at, misplaced};
use crate::holder::HolderRecord;

/// Which directory it is, whatever it is called.
type Identity = (u64, u64);

static OPENED: Mutex<BTreeMap<Identity, Opened>> = Mutex::new(BTreeMap::new());

struct Opened {
    path: PathBuf,
    shared: Weak<Shared>,
    /// Alive for as long as the environment is open: longer than the handles, while it is closed.
    core: Weak<Core>,
}

impl Opened {
    fn is_shared(&self) -> bool {
        self.shared.strong_count() > 0
    }
}

/// Opens a store, or shares it if this process already has it open.
pub(crate) fn open(
    directory: &Path,
    options: Options,
    clock: Box<dyn Clock>,
) -> Result<Arc<Shared>> {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(|_, opened| opened.core.strong_count() > 0);
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

    let gate = Gate::lock(directory, options.write_timeout)?;
    if opened.values().any(|opened| opened.is_shared() && opened.path == gate.path()) {
        return Err(misplaced(format!(
            "{} was removed or replaced while this process had the store in it open; close that \
             one first",
            directory.display()
        )));
    }
    wait_until_closed(&opened, gate.path(), options.write_timeout)?;
    if gate.is_created()? {
        gate.settle()?;
    } else {
        gate.create(|place| Environment::create(place, &options))?;
    }
    gate.prepare()?;
    let (user, alone) = gate.enter()?;
    let environment = Environment::open(gate.path(), &options, alone)?;
    let holder = HolderRecord::open(gate.path());
    let shared = Arc::new(Shared::start(environment, holder, user, options, clock)?);
    let identity = identity(gate.path()).map_err(at("cannot look at", directory))?;
    let path = gate.path().to_owned();
    let core = Arc::downgrade(&shared.core);
    opened.insert(identity, Opened { path, shared: Arc::downgrade(&shared), core });
    Ok(shared)
}

/// Waits until the environment of a directory is closed, if this process was closing it: the last
/// handle may have been dropped only just now. Refuses if a handle is alive.
pub(crate) fn wait_if_closing(directory: &Path, time_max: Duration) -> Result<()> {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(|_, opened| opened.core.strong_count() > 0);
    if opened.values().any(|opened| opened.is_shared() && opened.path == directory) {
        return Err(open_elsewhere(directory));
    }
    wait_until_closed(&opened, directory, time_max)
}

/// LMDB must not open one environment twice, so a store that this process cannot close is refused:
/// another process blocks its committer, or it takes too long.
fn wait_until_closed(
    opened: &BTreeMap<Identity, Opened>,
    path: &Path,
    time_max: Duration,
) -> Result<()> {
    // The directory may have another name by now.
    let identity = identity(path).ok();
    let mut known = opened.iter();
    let known = known.find(|(of, opened)| Some(**of) == identity || opened.path == path);
    let abandoned = known.and_then(|(_, opened)| opened.core.upgrade());
    let abandoned = abandoned.is_some_and(|core| core.queue.is_abandoned());
    let closing = heed::env_closing_event(known.map_or(path, |(_, opened)| &opened.path));
    if !abandoned && closing.is_none_or(|closing| closing.wait_timeout(time_max)) {
        return Ok(());
    }
    let message = format!(
        "{} is still being closed in this process, which waits for the write lock that another \
         process holds",
        path.display()
    );
    Err(Error::new(ErrorKind::Unavailable, message))
}

fn identity(directory: &Path) -> io::Result<Identity> {
    let found = fs::metadata(directory)?;
    Ok((found.dev(), found.ino()))
}
