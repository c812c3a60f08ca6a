//! Agreements under work: pages whose policies are extracted, translated and checked once for all who
//! work on them, and whose issues are tracked to their end.
//!
//! A [`Workspace`] has pages of one [source](source::Source): a folder, uploads, a wiki. Of each page it
//! keeps in its store what was made of it. What is promised:
//!
//! - **Once for everybody.** However many ask for a policy in a language, in however many processes, it
//!   is extracted once and translated once.
//! - **Never out of date.** A document that was made of an older attachment is dropped with all its
//!   translations, and issues that refer to it are marked stale.
//! - **Nothing is removed by mistake.** Only a source that says for certain that a page is gone has it
//!   purged.
//! - **Issues are tracked to their end**: what may become of one is a table, everything that happens to
//!   it is kept with who did it, and two who change it at once are told of each other.
//! - Everything is a [`Task`], which can be submitted as a job that is watched, cancelled, and taken over
//!   when its worker dies.
//!
//! `docs/agreements.md` has the guide, the keys and the locks.

mod activity;
mod adopt;
mod analysis;
mod catalog;
mod document;
mod error;
mod extractor;
mod fidelity;
mod issue;
mod lock_tree;
mod page;
mod places;
mod policy;
mod prompts;
mod settings;
pub mod source;
mod task;
mod translation;
mod workspace;

pub use activity::{Activity, Course};
pub use adopt::{Adopted, NotAdopted};
pub use analysis::{Analysis, Unread};
pub use catalog::{Catalog, Listed};
pub use document::{Document, Made};
pub use error::{Error, Result};
pub use extractor::Extractor;
pub use issue::{
    Annotation, Applied, Archived, By, Change, Event, Filter, Finding, Issue, IssueId, IssuePage,
    Issues, Located, Members, NewIssue, PageIssues, Part, Precision, Reference, Severity, Sort,
    State, Versioned, What, export_csv, export_markdown, locate, merge, transitions,
};
pub use lock_tree::{is_workspace, lock_tree};
pub use page::{Attachment, BodyFormat, Page, PageId, PageSummary, SourceId};
pub use settings::{AnalysisSettings, ExtractionSettings, Settings};
pub use task::{QUEUE, Task};
pub use workspace::{Options, Workspace};
