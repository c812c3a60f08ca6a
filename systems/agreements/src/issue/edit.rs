use super::limits::{ANNOTATIONS_BYTES_MAX, check_bytes};
use super::{Issue, Severity, State, What};
use crate::{Error, Result};

/// What to do with the annotations of an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Annotation {
    /// Add a paragraph. Of several people who do so at once, nobody's is lost.
    Append(String),
    /// Put this in their place. Refused if somebody else changed them meanwhile.
    Replace(String),
}

/// A change of one issue that somebody asks for.
#[derive(Debug, Clone)]
pub(super) enum Edit {
    Classify(Severity),
    Annotate(Annotation),
    Transition(State),
    Archive(bool),
}

impl Edit {
    /// What a lock is taken for.
    pub fn purpose(&self) -> &'static str {
        match self {
            Self::Classify(_) => "classify an issue",
            Self::Annotate(_) => "annotate an issue",
            Self::Transition(_) => "move an issue",
            Self::Archive(true) => "archive an issue",
            Self::Archive(false) => "bring an issue back",
        }
    }

    /// Whether somebody else changed just what this would change, so that it would be undone by
    /// somebody who has not seen it.
    pub fn is_overtaken(&self, seen: &Issue, now: &Issue) -> bool {
        match self {
            Self::Classify(to) => seen.severity != now.severity && now.severity != *to,
            Self::Annotate(Annotation::Append(_)) => false,
            Self::Annotate(Annotation::Replace(to)) => {
                seen.annotations != now.annotations && now.annotations != *to
            }
            // A move is asked for because of a state: not even the same move is made twice.
            Self::Transition(_) => seen.state != now.state,
            Self::Archive(to) => seen.archived != now.archived && now.archived != *to,
        }
    }

    /// Changes an issue, and says what happened to it; `None` if it is so already. When it is
    /// settled, and when no longer, is set by [`super::change`], which knows the time.
    pub fn apply(&self, issue: &mut Issue) -> Result<Option<What>> {
        if issue.archived && !matches!(self, Self::Archive(_)) {
            return Err(Error::Archived { issue: issue.id.to_string() });
        }
        match self {
            Self::Classify(to) => {
                let from = std::mem::replace(&mut issue.severity, *to);
                Ok((from != *to).then_some(What::Classified { from, to: *to }))
            }
            Self::Annotate(annotation) => {
                let new = match annotation {
                    Annotation::Replace(text) => text.clone(),
                    Annotation::Append(text) => match issue.annotations.trim_end() {
                        "" => text.clone(),
                        before => format!("{before}\n\n{text}"),
                    },
                };
                check_bytes("the annotations", new.len(), ANNOTATIONS_BYTES_MAX)?;
                let old = std::mem::replace(&mut issue.annotations, new);
                Ok((old != issue.annotations).then_some(What::Annotated))
            }
            Self::Transition(to) => {
                issue.state.check(*to)?;
                let from = std::mem::replace(&mut issue.state, *to);
                Ok(Some(What::Transition { from, to: *to }))
            }
            Self::Archive(to) => {
                let was = std::mem::replace(&mut issue.archived, *to);
                let what = if *to { What::Archived } else { What::Unarchived };
                Ok((was != *to).then_some(what))
            }
        }
    }
}
