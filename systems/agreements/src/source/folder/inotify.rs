//! Changes, as Linux tells of them.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use super::watch::Hints;

/// The watches on a folder, and on each page's directory in it.
#[derive(Debug)]
pub(super) struct Inotify {
    events: AsyncFd<OwnedFd>,
    root: i32,
    /// What is watched by which number: names on disk.
    pages: HashMap<i32, String>,
}

const BUFFER_BYTES: usize = 16 << 10;

impl Inotify {
    /// Begins to watch a folder, without its pages. Called inside a runtime.
    pub fn open(root: &Path) -> io::Result<Self> {
        let events = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        #[expect(deprecated, reason = "unsound only for types that do not keep their descriptor")]
        let events = AsyncFd::new(events)?;
        let root = add_watch(
            events.get_ref(),
            root,
            WatchFlags::ONLYDIR
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF,
        )?;
        Ok(Self { events, root, pages: HashMap::new() })
    }

    /// Begins to watch a page's directory. One that is not there, or no directory, is not watched.
    pub fn add(&mut self, root: &Path, disk: &str) -> io::Result<()> {
        let flags = WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE;
        match add_watch(self.events.get_ref(), root.join(disk), flags) {
            Ok(number) => {
                self.pages.insert(number, disk.to_owned());
                Ok(())
            }
            // Somebody else's directory tells nothing; it is compared from time to time.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until something happens, and tells what. Nothing is lost if the future is dropped.
    pub async fn hints(&mut self) -> io::Result<Hints> {
        loop {
            let mut ready = self.events.readable().await?;
            let mut hints = Hints::default();
            let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
            let mut reader = Reader::new(ready.get_inner(), &mut buffer);
            loop {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::INTR) => continue,
                    Err(Errno::AGAIN) => break,
                    Err(error) => return Err(error.into()),
                };
                let name = event.file_name().and_then(|name| name.to_str().ok());
                let hidden = name.is_some_and(|name| name.starts_with('.'));
                let what = event.events();
                if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                    hints.everything = true;
                } else if event.wd() == self.root {
                    match name {
                        Some(name) if !hidden => hints.add(name),
                        Some(_) => {}
                        None => hints.root_gone = true,
                    }
                } else if what.contains(ReadFlags::IGNORED) {
                    if let Some(disk) = self.pages.remove(&event.wd()) {
                        hints.add(&disk);
                    }
                } else if let (Some(disk), false) = (self.pages.get(&event.wd()), hidden) {
                    hints.add(disk);
                }
            }
            ready.clear_ready();
            if hints != Hints::default() {
                return Ok(hints);
            }
        }
    }
}
