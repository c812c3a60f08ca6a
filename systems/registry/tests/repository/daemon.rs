//! `git daemon`, one process per connection, as inetd would run it: so the port is ours from the
//! beginning, and there is nobody to lose a race for it against.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::{exporting, git};

/// A `git daemon` on a loopback port, stopped when it is dropped.
pub struct Daemon {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    children: Arc<Mutex<Vec<Child>>>,
    accepting: Option<JoinHandle<()>>,
}

impl Daemon {
    pub(super) fn start(root: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let address = listener.local_addr().expect("it has an address");
        let stopping = Arc::new(AtomicBool::new(false));
        let children = Arc::new(Mutex::new(Vec::new()));
        let accepting = std::thread::spawn({
            let (stopping, children) = (stopping.clone(), children.clone());
            let root = root.to_owned();
            move || accept(&listener, &root, &stopping, &children)
        });
        Self { address, stopping, children, accepting: Some(accepting) }
    }

    /// The repository's URL.
    pub fn url(&self) -> String {
        format!("git://{}/policies.git", self.address)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the one who accepts.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
        for child in self.children.lock().expect("nobody panicked").iter_mut() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn accept(
    listener: &TcpListener,
    root: &Path,
    stopping: &AtomicBool,
    children: &Mutex<Vec<Child>>,
) {
    for stream in listener.incoming() {
        if stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let input = OwnedFd::from(stream.try_clone().expect("a socket can be shared"));
        let mut daemon = git();
        exporting(&mut daemon, root);
        let child = daemon
            .args(["daemon", "--inetd", "--export-all"])
            .arg(format!("--base-path={}", root.display()))
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(OwnedFd::from(stream)))
            .stderr(Stdio::null())
            .spawn()
            .expect("git daemon is installed");
        children.lock().expect("nobody panicked").push(child);
    }
}
