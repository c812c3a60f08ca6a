//! Shell blocks of Markdown pages, and running them as a reader would who pastes them into a shell.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A shell block of a page.
pub struct Block {
    /// The line of its fence.
    pub line: usize,
    /// Whether it shows a terminal: commands after `$`, and what they print.
    pub is_session: bool,
    /// Why it cannot be run by a test: what stands behind `no-test:` in its fence.
    pub untested: Option<String>,
    pub commands: Vec<Shown>,
}

/// A command of a block.
pub struct Shown {
    pub text: String,
    /// What it prints, where the page shows that.
    pub prints: Option<String>,
}

impl Block {
    /// The whole block as one text.
    pub fn text(&self) -> String {
        self.commands.iter().map(|command| format!("{}\n", command.text)).collect()
    }
}

/// The shell blocks of a page. What stands behind their language must be `no-test:` and a reason.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(fence) = line.strip_prefix("```") else { continue };
        let inside: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let (language, mark) = fence.split_once(' ').unwrap_or((fence, ""));
        if !["sh", "bash", "zsh", "shell", "console"].contains(&language) {
            continue;
        }
        let untested = (!mark.is_empty()).then(|| {
            let reason = mark.strip_prefix("no-test: ").unwrap_or_default().trim();
            assert!(!reason.is_empty(), "line {}: write no-test: and the reason", at + 1);
            reason.to_owned()
        });
        let is_session = language == "console";
        let commands = if is_session { session(&inside) } else { logical_lines(&inside) };
        assert!(!commands.is_empty(), "line {}: a block without commands", at + 1);
        found.push(Block { line: at + 1, is_session, untested, commands });
    }
    found
}

fn session(lines: &[&str]) -> Vec<Shown> {
    let mut commands: Vec<Shown> = Vec::new();
    for line in lines {
        match line.strip_prefix("$ ") {
            Some(text) => {
                commands.push(Shown { text: text.to_owned(), prints: Some(String::new()) });
            }
            None => {
                let last = commands.last_mut().expect("a session begins with a command");
                last.prints.get_or_insert_default().push_str(&format!("{line}\n"));
            }
        }
    }
    commands
}

/// Commands, each on a line, or on several with a backslash at their ends.
fn logical_lines(lines: &[&str]) -> Vec<Shown> {
    let mut commands = Vec::new();
    let mut text = String::new();
    for line in lines {
        text.push_str(line);
        if line.ends_with('\\') {
            text.push('\n');
        } else if !text.trim().is_empty() {
            commands.push(Shown { text: std::mem::take(&mut text), prints: None });
        }
    }
    commands
}

/// A shell that readers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Zsh,
}

impl Shell {
    /// The shell, without anybody's configuration, reading commands from its input. Zsh is interactive:
    /// only then is it as strict as for those who paste, to whom `#` begins no comment.
    fn command(self) -> Command {
        let mut command = match self {
            Self::Bash => Command::new("bash"),
            Self::Zsh => Command::new("zsh"),
        };
        match self {
            Self::Bash => command.args(["--norc", "--noprofile", "-s"]),
            Self::Zsh => command.args(["-f", "-i", "-s", "-o", "nomonitor", "-o", "nonotify"]),
        };
        command.env("PS1", "").env("PS2", "").env("PROMPT_EOL_MARK", "");
        command
    }

    /// Panics, with the way out, if this machine does not have the shell.
    pub fn require(self) {
        let name = if self == Self::Bash { "bash" } else { "zsh" };
        let is_there = Command::new(name).arg("-c").arg(":").status().is_ok_and(|it| it.success());
        assert!(
            is_there,
            "{name} is not installed: run the tests by testing/services/run, which installs it from \
             Debian's packages, or install it yourself"
        );
    }

    /// Panics if the shell cannot read a text.
    pub fn check(self, text: &str, about: &str) {
        let name = if self == Self::Bash { "bash" } else { "zsh" };
        let output = Command::new(name).args(["-n", "-c", text]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.is_empty(), "{about} in {name}: {told}");
    }
}

/// A directory to run blocks in, with a port for the server that they start or speak to.
pub struct Reader {
    pub directory: PathBuf,
    pub port: u16,
    /// What stands in pages, and what is run instead.
    pub instead: Vec<(String, String)>,
    pub variables: Vec<(String, String)>,
}

/// How long a background command may take until it is ready, in tenths of seconds.
const TENTHS_MAX: usize = 600;

impl Reader {
    pub fn new(directory: PathBuf) -> Self {
        let port = free_port();
        let instead = ["7480", "8080"].map(|usual| (format!(":{usual}"), format!(":{port}")));
        Self { directory, port, instead: instead.to_vec(), variables: Vec::new() }
    }

    /// Runs commands one after the other in one shell. Panics unless each does what the page says: prints
    /// that, or succeeds. An endless `curl -N` is ended after two seconds.
    pub fn run<'b>(&self, shell: Shell, page: &str, blocks: impl Iterator<Item = &'b Block>) {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: String| scratch.path().join(name);
        let pids = at("pids".to_owned());
        let mut script = String::new();
        let mut run = Vec::new();
        for block in blocks {
            for command in &block.commands {
                let number = run.len();
                let (out, code) = (at(format!("{number}.out")), at(format!("{number}.code")));
                let text = self.replaced(&command.text, &out);
                let group = format!("</dev/null >'{}' 2>&1", out.display());
                script
                    .push_str(&format!("{{\n{text}\n}} {group}\necho $? >'{}'\n", code.display()));
                if is_background(&text) {
                    script.push_str(&format!("echo $! >>'{}'\n", pids.display()));
                    script.push_str(&ready(&text, &out));
                }
                run.push((block, command, out, code));
            }
        }
        let status = self.start(shell, &script);
        for pid in fs::read_to_string(&pids).unwrap_or_default().lines() {
            if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
                // One that ended by itself is not there any more.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        assert!(status.is_some(), "{page} in {shell:?}");
        for (block, command, out, code) in &run {
            let printed = fs::read_to_string(out).unwrap_or_default();
            let code = fs::read_to_string(code).unwrap_or_default();
            let about = format!(
                "{page}:{} in {shell:?}: {}\nprinted (exit code {}):\n{printed}",
                block.line,
                command.text,
                code.trim()
            );
            match &command.prints {
                Some(prints) => {
                    assert_eq!(&printed, prints, "{about}");
                    assert_eq!(code == "0\n", !prints.starts_with("error: "), "{about}");
                }
                // What goes on for ever was ended.
                None if command.text.contains("curl -N") => {
                    assert!(["0\n", "28\n"].contains(&&*code), "{about}");
                    // When curl was ended, it says so itself: that is no output of the server.
                    let shown = printed.lines().filter(|line| !line.starts_with("curl: "));
                    assert!(shown.map(str::trim).any(|line| !line.is_empty()), "{about}");
                }
                None => assert_eq!(code, "0\n", "{about}"),
            }
        }
    }

    fn replaced(&self, text: &str, out: &Path) -> String {
        let mut text = text.to_owned();
        for (printed, real) in &self.instead {
            text = text.replace(printed, real);
        }
        let text = text.replace("curl -N ", "curl -N --max-time 2 ");
        match is_foreground_server(&text) {
            // A reader looks at it, and ends it.
            true => {
                format!("{text} &\n{}kill $!\nwait $!", ready(&text, out))
            }
            false => text,
        }
    }

    fn start(&self, shell: Shell, script: &str) -> Option<i32> {
        let home = self.directory.join(".home");
        fs::create_dir_all(&home).unwrap();
        // An answer that is an error fails its command, although a reader would see it.
        fs::write(home.join(".curlrc"), "fail-with-body\nno-progress-meter\n").unwrap();
        let mut command = shell.command();
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("KEYWARD_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .current_dir(&self.directory)
            .env("PATH", path())
            .env("HOME", &home)
            .env("KEYWARD_LISTEN", format!("127.0.0.1:{}", self.port))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_CACHE_HOME")
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), script.as_bytes()).unwrap();
        child.wait().unwrap().code()
    }
}

/// A port that nobody listens on. It is below those that systems give out, since it is not held all the time
/// and no other test should be given it meanwhile.
fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(20_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// What waits until a background command has said that it can be used.
fn ready(text: &str, out: &Path) -> String {
    let says = if text.contains("keyward serve") {
        "Ctrl-C stops it"
    } else if text.contains("lock acquire") {
        "token"
    } else {
        return String::new();
    };
    format!(
        "tenths=0; until grep -q '{says}' '{}'; do sleep 0.1; tenths=$((tenths + 1)); \
         [ $tenths -lt {TENTHS_MAX} ] && kill -0 $! || break; done\n",
        out.display()
    )
}

fn is_background(text: &str) -> bool {
    text.trim_end().ends_with('&')
}

fn is_foreground_server(text: &str) -> bool {
    text.starts_with("keyward serve") && !text.contains("--check") && !is_background(text)
}

/// Where programs are looked for, with the command that was built.
fn path() -> OsString {
    let built = Path::new(env!("CARGO_BIN_EXE_keyward")).parent().unwrap().to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    env::join_paths([built].into_iter().chain(env::split_paths(&path))).unwrap()
}
