//! A directory of text files, `/memories`, that a model reads and edits by commands.
//!
//! The commands, paths and answers are those of Anthropic's memory tool, so that a model that knows the
//! one knows the other. A file is an entry of the namespace [`Memories::NAMESPACE`], its key the path
//! below `/memories`, its value the text: it has a history and an owner as every entry has. A directory
//! is there as long as a file lies in it.

mod edit;
mod listing;
mod path;

use keyward_engine::{Json, Version};
use keyward_records::{LIMIT_MAX, Precondition, Relocated, Written};
use serde::Deserialize;

use self::path::FilePath;
use crate::namespace::Namespace;
use crate::set::Set;
use crate::user_data::UserData;
use crate::{Error, Result};

/// How often an edit is tried again when others change the file.
const ATTEMPTS_MAX: usize = 256;
/// How many lines a file has that can be shown: line numbers have six digits.
const LINES_MAX: usize = 999_999;

/// One command of the memory tool.
///
/// ```
/// use keyward_agents::MemoryCommand;
///
/// let command = r#"{"command":"view","path":"/memories","view_range":[1,-1]}"#;
/// let command: MemoryCommand = serde_json::from_str(command)?;
/// assert!(matches!(command, MemoryCommand::View { view_range: Some([1, -1]), .. }));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum MemoryCommand {
    /// Shows a file with line numbers, or what lies in a directory.
    View {
        /// The file or directory.
        path: String,
        /// The first and last line to show; -1 for the end of the file.
        #[serde(default)]
        view_range: Option<[i64; 2]>,
    },
    /// Makes a file, which must not exist.
    Create {
        /// The file.
        path: String,
        /// Its text.
        file_text: String,
    },
    /// Replaces a text that stands in a file exactly once.
    StrReplace {
        /// The file.
        path: String,
        /// What stands there.
        old_str: String,
        /// What shall stand there; nothing, if it is left out.
        #[serde(default)]
        new_str: String,
    },
    /// Inserts lines into a file.
    Insert {
        /// The file.
        path: String,
        /// After which line; 0 for the start of the file.
        insert_line: i64,
        /// The lines.
        insert_text: String,
    },
    /// Removes a file, or a directory with all that lies in it.
    Delete {
        /// The file or directory.
        path: String,
    },
    /// Gives a file or a directory another path, which must not exist.
    Rename {
        /// The path it has.
        old_path: String,
        /// The path it shall have.
        new_path: String,
    },
}

/// What a model is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryAnswer {
    /// The answer, in the words that models know.
    pub text: String,
    /// Whether the command could not be done.
    pub failed: bool,
}

/// The memories of a user, as one agent reaches them.
///
/// Edits of one file by several at once are all kept. Renaming or deleting a directory goes file by
/// file: others see it half done, and after a crash it is to be asked for again.
#[derive(Debug, Clone)]
pub struct Memories {
    files: Namespace,
}

/// Why a command was not done.
enum Refused {
    /// The model is told.
    Told(String),
    /// Nothing that the command could do better.
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

type Done<T = String> = std::result::Result<T, Refused>;

/// A file as it was read.
struct File {
    text: String,
    version: Version,
}

impl UserData {
    /// The user's memories.
    pub fn memories(&self) -> Result<Memories> {
        Ok(Memories { files: self.use_namespace(Memories::NAMESPACE)? })
    }
}

impl Memories {
    /// The namespace that holds the files.
    pub const NAMESPACE: &str = "memories";

    /// Does what a command says. What the command gets wrong is an answer; an error is what the store
    /// could not do.
    pub async fn run(&self, command: &MemoryCommand) -> Result<MemoryAnswer> {
        let done = match command {
            MemoryCommand::View { path, view_range } => self.view(path, *view_range).await,
            MemoryCommand::Create { path, file_text } => self.create(path, file_text).await,
            MemoryCommand::StrReplace { path, old_str, new_str } => {
                self.str_replace(path, old_str, new_str).await
            }
            MemoryCommand::Insert { path, insert_line, insert_text } => {
                self.insert(path, *insert_line, insert_text).await
            }
            MemoryCommand::Delete { path } => self.delete(path).await,
            MemoryCommand::Rename { old_path, new_path } => self.rename(old_path, new_path).await,
        };
        match done {
            Ok(text) => Ok(MemoryAnswer { text, failed: false }),
            Err(Refused::Told(text)) => Ok(MemoryAnswer { text, failed: true }),
            Err(Refused::Failed(error)) => Err(error),
        }
    }

    /// How many files a path stands for: what a [`MemoryCommand::Delete`] of it would remove. None for a
    /// path that is none, and for `/memories` itself, which stays.
    pub async fn count(&self, path: &str) -> Result<usize> {
        let Ok(path) = FilePath::parse(path) else { return Ok(0) };
        if path.is_root() {
            return Ok(0);
        }
        let below = self.files.count(&path.below()).await?;
        // A key comes before all that begin with it.
        let (first, _) = self.files.page_of_keys(path.key(), None, 1).await?;
        let is_file = first.first().is_some_and(|first| self.files.key_of(first) == path.key());
        Ok(below + usize::from(is_file))
    }

    async fn view(&self, path: &str, range: Option<[i64; 2]>) -> Done {
        let path = FilePath::parse(path)?;
        match self.read(&path).await? {
            Some(file) => edit::shown(&path, &file.text, range),
            None if range.is_some() && self.is_directory(&path).await? => {
                Err(Refused::Told(format!("Error: {path} is a directory: leave view_range out")))
            }
            None => listing::shown(&self.files, &path).await,
        }
    }

    async fn create(&self, path: &str, text: &str) -> Done {
        let path = FilePath::parse(path)?;
        if self.is_directory(&path).await? {
            return Err(Refused::Told(format!("Error: {path} is a directory")));
        }
        self.admit_below(&path).await?;
        if !self.write(&path, text, Precondition::Absent).await? {
            return Err(Refused::Told(format!("Error: File {path} already exists")));
        }
        Ok(format!("File created successfully at: {path}"))
    }

    async fn str_replace(&self, path: &str, old: &str, new: &str) -> Done {
        let path = FilePath::parse(path)?;
        let missing =
            format!("Error: The path {path} does not exist. Please provide a valid path.");
        self.edit(&path, missing, |text| edit::replaced(&path, text, old, new)).await
    }

    async fn insert(&self, path: &str, line: i64, text: &str) -> Done {
        let path = FilePath::parse(path)?;
        let missing = format!("Error: The path {path} does not exist");
        self.edit(&path, missing, |old| edit::inserted(&path, old, line, text)).await
    }

    async fn delete(&self, path: &str) -> Done {
        let path = FilePath::parse(path)?;
        if path.is_root() {
            return Err(Refused::Told(format!("Error: The directory {path} itself stays")));
        }
        let mut deleted = self.files.delete(path.key()).await?;
        loop {
            // What was listed is gone by then, so each page is the first.
            let page = self.files.list_keys(&path.below(), None, LIMIT_MAX).await?;
            for key in &page.keys {
                deleted |= self.files.delete(key).await?;
            }
            if page.next.is_none() {
                break;
            }
        }
        match deleted {
            true => Ok(format!("Successfully deleted {path}")),
            false => Err(Refused::Told(format!("Error: The path {path} does not exist"))),
        }
    }

    async fn rename(&self, old: &str, new: &str) -> Done {
        let (old, new) = (FilePath::parse(old)?, FilePath::parse(new)?);
        if old.is_root() || old.contains(&new) && old != new {
            let message = format!("Error: {old} cannot become {new}, which lies in it");
            return Err(Refused::Told(message));
        }
        let taken = || Refused::Told(format!("Error: The destination {new} already exists"));
        if self.is_there(&new).await? {
            return Err(taken());
        }
        self.admit_below(&new).await?;
        let mut renamed = match self.files.rename(old.key(), new.key()).await? {
            Relocated::Moved => true,
            // Nobody asked whether it belongs there, so it has not changed.
            Relocated::Absent | Relocated::Changed => false,
            Relocated::Taken => return Err(taken()),
        };
        loop {
            let page = self.files.list_keys(&old.below(), None, LIMIT_MAX).await?;
            for key in &page.keys {
                let to = format!("{}{}", new.below(), &key[old.below().len()..]);
                match self.files.rename(key, &to).await? {
                    Relocated::Moved => renamed = true,
                    Relocated::Absent | Relocated::Changed => {}
                    Relocated::Taken => return Err(taken()),
                }
            }
            if page.next.is_none() {
                break;
            }
        }
        match renamed {
            true => Ok(format!("Successfully renamed {old} to {new}")),
            false => Err(Refused::Told(format!("Error: The path {old} does not exist"))),
        }
    }

    /// Changes a file to what `change` makes of its text, however many do so at once, and gives the
    /// answer that belongs to the text that was changed.
    async fn edit(
        &self,
        path: &FilePath,
        missing: String,
        change: impl Fn(&str) -> Done<(String, String)>,
    ) -> Done {
        for _ in 0..ATTEMPTS_MAX {
            let Some(file) = self.read(path).await? else { return Err(Refused::Told(missing)) };
            let (text, answer) = change(&file.text)?;
            if self.write(path, &text, Precondition::Version(file.version)).await? {
                return Ok(answer);
            }
        }
        Err(Refused::Told(format!(
            "Error: {path} is being changed by others all the time. Please try again."
        )))
    }

    /// Refuses a new path below a file.
    async fn admit_below(&self, path: &FilePath) -> Done<()> {
        for above in path.directories() {
            if self.read(&above).await?.is_some() {
                return Err(Refused::Told(format!("Error: {above} is a file, not a directory")));
            }
        }
        Ok(())
    }

    async fn is_there(&self, path: &FilePath) -> Done<bool> {
        Ok(self.is_directory(path).await? || self.read(path).await?.is_some())
    }

    async fn is_directory(&self, path: &FilePath) -> Done<bool> {
        Ok(path.is_root() || !self.files.list_keys(&path.below(), None, 1).await?.keys.is_empty())
    }

    async fn read(&self, path: &FilePath) -> Done<Option<File>> {
        if path.is_root() {
            return Ok(None);
        }
        let entry = self.files.entry(path.key()).await?;
        Ok(entry.map(|entry| File { text: text_of(&entry.value), version: entry.version }))
    }

    /// Writes a file. False, if it was not as expected.
    async fn write(&self, path: &FilePath, text: &str, expect: Precondition) -> Done<bool> {
        let value = Json::from_value(&text).map_err(|error| Error::Invalid(error.to_string()))?;
        let written = self.files.set(path.key(), Set::new(value).expecting(expect)).await?;
        Ok(!matches!(written, Written::Conflicted { .. }))
    }
}

/// The text of a file. What others put into the namespace is shown as the JSON it is.
fn text_of(value: &Json) -> String {
    serde_json::from_str(value.as_str()).unwrap_or_else(|_| value.as_str().to_owned())
}
