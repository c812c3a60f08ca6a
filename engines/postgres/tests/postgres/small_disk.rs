//! A small disk of a test's own, which the test can fill up.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{getegid, geteuid};

/// A `tmpfs` in a mount namespace of its own, so that nothing is left of it when the test has ended,
/// however it ended.
pub struct SmallDisk {
    /// Keeps the namespace; ends when its input does, hence with the test.
    keeper: Child,
    mounted_at: PathBuf,
}

/// Says what a machine must allow.
const NEEDED: &str = "this test fills up a disk of its own, for which it must mount a tmpfs in a \
    namespace of its own: run it as root with CAP_SYS_ADMIN (in a container: --cap-add SYS_ADMIN), \
    or allow namespaces to users (sysctl kernel.unprivileged_userns_clone=1, \
    kernel.apparmor_restrict_unprivileged_userns=0)";

impl SmallDisk {
    /// Mounts a disk of a size at a directory, which exists.
    pub fn mount(at: &Path, mebibytes: u32) -> Self {
        // Over a directory that others may write, so that the server's user needs nothing more.
        const SCRIPT: &str =
            "mount -t tmpfs -o size=\"$2\"m,mode=0777 tmpfs \"$1\" && echo mounted && exec cat";
        let mut unshare = Command::new("unshare");
        if !geteuid().is_root() {
            unshare.arg("--map-root-user");
        }
        let mut keeper = unshare
            .args(["--mount", "sh", "-c", SCRIPT, "sh"])
            .arg(at)
            .arg(mebibytes.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{NEEDED}; there is no unshare: {error}"));
        let mut said = String::new();
        let mut output = BufReader::new(keeper.stdout.take().unwrap());
        output.read_line(&mut said).unwrap();
        if said.trim() != "mounted" {
            let mut why = String::new();
            keeper.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            panic!("{NEEDED}; here: {}", why.trim());
        }
        Self { keeper, mounted_at: at.to_owned() }
    }

    /// A command that runs another one where the disk can be seen, as the user who asks.
    pub fn enter(&self) -> Vec<String> {
        let keeper = self.keeper.id();
        if geteuid().is_root() {
            return vec!["nsenter".to_owned(), format!("--mount=/proc/{keeper}/ns/mnt")];
        }
        // In that namespace we are root, which a server refuses to be; so back again.
        let back = format!(
            "nsenter --target={keeper} --user --mount --preserve-credentials \
             unshare --user --map-user={} --map-group={}",
            geteuid().as_raw(),
            getegid().as_raw()
        );
        back.split(' ').map(str::to_owned).collect()
    }

    /// A file that nobody needs.
    fn ballast(&self) -> PathBuf {
        let inside = Path::new("/proc").join(self.keeper.id().to_string()).join("root");
        inside.join(self.mounted_at.strip_prefix("/").unwrap()).join("ballast")
    }

    /// Takes all space that is left.
    pub fn fill(&self) {
        let mut ballast = File::options().create(true).append(true).open(self.ballast()).unwrap();
        let page = [0; 4096];
        loop {
            match ballast.write(&page) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return,
                Err(error) => panic!("the disk cannot be filled: {error}"),
            }
        }
    }

    /// Gives it back.
    pub fn clear(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
