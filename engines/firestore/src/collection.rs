//! Names of collections and documents.

use keyward_engine::{Error, ErrorKind, Result};

/// The longest document or collection id that Firestore takes.
pub(crate) const ID_BYTES_MAX: usize = 1_500;
/// How long the path of a collection may be. The name of a document has at most 6 KiB, and counts as part of its size.
const PATH_BYTES_MAX: usize = 1_500;

/// A collection of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collection {
    pub project: String,
    pub database: String,
    /// The ids of the collection, and of the documents and collections that it lies in.
    path: Vec<String>,
}

impl Collection {
    /// The collection at a path such as `notes` or `apps/x/notes`.
    pub fn new(project: &str, database: &str, path: &[String]) -> Result<Self> {
        for (what, id) in [("project", project), ("database", database)] {
            let is_plain = |c: char| !c.is_control() && !c.is_whitespace() && c != '/';
            if id.is_empty() || id.len() > 100 || !id.chars().all(is_plain) {
                return Err(invalid(format!(
                    "{what} must be a name such as {}, not {id:?}",
                    match what {
                        "project" => "my-project",
                        _ => "(default)",
                    }
                )));
            }
        }
        if path.len().is_multiple_of(2) {
            return Err(invalid(format!(
                "{:?} is the path of a document or empty; a collection's path has an odd number of parts, \
                 such as notes or apps/x/notes",
                path.join("/")
            )));
        }
        for id in path {
            if let Some(problem) = id_problem(id) {
                return Err(invalid(format!("{id:?} in the collection's path {problem}")));
            }
        }
        if path.iter().map(|id| id.len() + 1).sum::<usize>() > PATH_BYTES_MAX {
            return Err(invalid(format!(
                "the collection's path must be at most {PATH_BYTES_MAX} bytes long"
            )));
        }
        Ok(Self { project: project.to_owned(), database: database.to_owned(), path: path.to_vec() })
    }

    /// Its own id.
    pub fn id(&self) -> &str {
        self.path.last().map(String::as_str).unwrap_or_default()
    }

    /// The ids of the documents and collections that it lies in.
    pub fn parents(&self) -> &[String] {
        self.path.split_last().map(|(_, parents)| parents).unwrap_or_default()
    }

    /// `projects/P/databases/D/documents`.
    pub fn root(&self) -> String {
        format!("projects/{}/databases/{}/documents", self.project, self.database)
    }

    /// The full name of one of its documents.
    pub fn name(&self, id: &str) -> String {
        format!("{}/{}/{id}", self.root(), self.path.join("/"))
    }

    /// The id in the full name of one of its documents.
    pub fn document_id<'n>(&self, name: &'n str) -> Option<&'n str> {
        let start = self.name("");
        name.strip_prefix(start.as_str())
    }

    /// What a document's name adds to its size: each id and one byte, and 16 bytes.
    pub fn name_bytes(&self, id: &str) -> usize {
        self.path.iter().map(|id| id.len() + 1).sum::<usize>() + id.len() + 1 + 16
    }
}

/// Why Firestore takes no document or collection with this id, if it does not.
pub(crate) fn id_problem(id: &str) -> Option<&'static str> {
    match id {
        "" => Some("is empty"),
        "." | ".." => Some("is . or .., which Firestore refuses as an id"),
        id if id.contains('/') => Some("has a slash, which Firestore refuses in ids"),
        id if id.len() >= 4 && id.starts_with("__") && id.ends_with("__") => {
            Some("begins and ends with __, which Firestore keeps for itself")
        }
        id if id.len() > ID_BYTES_MAX => {
            Some("is longer than 1500 bytes, the longest id that Firestore takes")
        }
        _ => None,
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
