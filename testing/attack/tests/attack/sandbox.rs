//! A directory with a schema and a store, and the `keyward` command in it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use tempfile::TempDir;

/// Users' notes, a diary and a staff list that need roles, places to search, and pages to lock.
const SCHEMA: &str = r#"
[stores.main]
url = "embedded:./data"

[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
history = 3

[spaces.diary]
key = "user:{user}:diary:{day}"
ownership = "user"
read_roles = ["member"]
write_roles = ["member"]

[spaces.staff]
key = "shared:staff:{person}"
ownership = "shared"
read_roles = ["hr"]
write_roles = ["hr"]

[spaces.stations]
key = "shared:stations:{station}"
ownership = "shared"
value = { properties.position = { properties = { lat.type = "number", lon.type = "number" } } }

[spaces.stations.indexes.stations_near]
kind = "geohash"
lat = "position.lat"
lon = "position.lon"
precision = 6

[locks.page]
root = "page:{page}"
paths = ["policies", "policies:{policy}"]
"#;

/// The store of the schema, for commands that work on entries.
pub const STORE: &str = "embedded:./data";

/// The command under test: `KEYWARD_BINARY`, or the one that was built along with the tests.
fn binary() -> PathBuf {
    if let Some(binary) = env::var_os("KEYWARD_BINARY") {
        return PathBuf::from(binary);
    }
    // Tests lie in target/PROFILE/deps, commands in target/PROFILE.
    let test = env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap();
    let binary = folder.join("keyward");
    assert!(
        binary.exists(),
        "{} is missing. Run `cargo build -p keyward-cli`, or set KEYWARD_BINARY.",
        binary.display()
    );
    binary
}

/// An empty directory to run in, with a schema whose one store is `embedded:./data`.
pub struct Sandbox(TempDir);

impl Sandbox {
    pub fn new() -> Self {
        let sandbox = Self(tempfile::tempdir().unwrap());
        sandbox.write("keyward.schema.toml", SCHEMA);
        sandbox
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// The command with nothing of the outer environment that it would look at.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("KEYWARD_") || name.starts_with("XDG_") || name.starts_with("OTEL_")
            {
                command.env_remove(&*name);
            }
        }
        command.env("HOME", self.path("home"));
        command
    }

    /// What a command that must succeed prints.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str], input: &str) -> String {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that fails may not read everything; its status tells.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {told}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Writes entries before the server starts, and builds the indexes over them.
    pub fn seed(&self, entries: impl Iterator<Item = (String, serde_json::Value)>) {
        let lines: String = entries
            .map(|(key, value)| format!("{}\n", serde_json::json!({"key": key, "value": value})))
            .collect();
        self.ok(&["-s", STORE, "import", "--raw"], &lines);
        self.ok(&["migrate", "--yes"], "");
    }

    /// An API key, made on the store itself.
    pub fn create_key(&self, arguments: &[&str]) -> String {
        let printed = self.ok(&[&["key", "create"], arguments].concat(), "");
        printed.trim().to_owned()
    }

    /// How many bytes the store takes on disk.
    pub fn store_bytes(&self) -> u64 {
        disk_bytes(&self.path("data"))
    }
}

fn disk_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(path).unwrap();
    if !metadata.is_dir() {
        // Blocks, since data files may have holes.
        return metadata.blocks() * 512;
    }
    fs::read_dir(path).unwrap().map(|entry| disk_bytes(&entry.unwrap().path())).sum()
}
