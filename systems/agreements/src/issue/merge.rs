//! What an analysis found, beside what is known.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::filter::folded;
use super::limits::one_line;
use super::{Issue, IssueId, NewIssue, Part, Reference, Severity, part};
use crate::SourceId;

/// How alike two titles are that mean the same about one passage, from 0 to 1.
const TITLES_ALIKE: f64 = 0.5;

/// Something that an analysis found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The known issue that it is, if the analysis says so.
    #[serde(default)]
    pub known: Option<IssueId>,
    /// What it is about.
    pub title: String,
    /// How much it weighs.
    pub severity: Severity,
    /// What it is, and where it shows.
    #[serde(default)]
    pub description: Vec<Part>,
}

/// What is to be done about the findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Make an issue.
    Create(NewIssue),
    /// An issue that was stale stands, and shows at other places.
    Refresh {
        /// The issue.
        issue: IssueId,
        /// Its description, with the references that were found.
        description: Vec<Part>,
    },
}

/// Compares what an analysis found with what is known, archived issues included, and says what is to be
/// done. A finding is a known issue if it names it, has the same title but for case and white space, or
/// quotes more than half of a passage that the issue quotes under a title that is alike.
///
/// - What is new is made, once, also if it was found several times; it then has the highest severity of
///   those.
/// - A known issue is not made again. If it was stale, it gets the references of the finding and is so
///   no longer, as long as the finding has any. Its state, severity and annotations are people's: they
///   stay, as does all text of the description.
/// - What is resolved stays resolved, and what is archived is left alone.
///
/// What is too long is cut. The order is that of the findings.
pub fn merge(known: &[Issue], findings: Vec<Finding>) -> Vec<Change> {
    let mut index = Index::default();
    let mut by_id = HashMap::new();
    for (at, issue) in known.iter().enumerate() {
        by_id.insert(issue.id, at);
        index.add(Which::Known(at), &issue.title, &issue.description);
    }
    let mut changes: Vec<Change> = Vec::new();
    // What was found of known issues, in all policies: where it stands in the changes.
    let mut refreshed: HashMap<IssueId, usize> = HashMap::new();
    for finding in findings {
        let named = finding.known.and_then(|id| by_id.get(&id)).map(|at| Which::Known(*at));
        let found = named.or_else(|| index.find(&finding.title, &finding.description));
        match found {
            Some(Which::Known(at)) => {
                let issue = &known[at];
                if !issue.stale || issue.archived {
                    continue;
                }
                let place = refreshed.get(&issue.id).copied();
                let before = match place.map(|place| &changes[place]) {
                    Some(Change::Refresh { description, .. }) => description,
                    _ => &issue.description,
                };
                let Some(description) = refresh(before, finding) else { continue };
                let change = Change::Refresh { issue: issue.id, description };
                match place {
                    Some(place) => changes[place] = change,
                    None => {
                        refreshed.insert(issue.id, changes.len());
                        changes.push(change);
                    }
                }
            }
            Some(Which::New(at)) => {
                if let Some(Change::Create(new)) = changes.get_mut(at) {
                    new.severity = new.severity.max(finding.severity);
                }
            }
            None => {
                let new = NewIssue::new(finding.title, finding.severity);
                let new = new.describe(finding.description).fitted();
                // What has no title is nothing that anybody could work on.
                if !new.title.is_empty() {
                    index.add(Which::New(changes.len()), &new.title, &new.description);
                    changes.push(Change::Create(new));
                }
            }
        }
    }
    changes
}

/// A description with the places that were found now. What refers to other policies than those stays: a
/// finding is of one policy, and an issue may be of several.
fn refresh(before: &[Part], finding: Finding) -> Option<Vec<Part>> {
    let found: Vec<Part> =
        finding.description.into_iter().filter(|part| part.reference().is_some()).collect();
    let sources: BTreeSet<SourceId> =
        found.iter().filter_map(Part::reference).map(|it| it.source.clone()).collect();
    if found.is_empty() {
        return None;
    }
    let mut found = found.into_iter();
    let mut description = Vec::new();
    for part in before {
        match part {
            Part::Reference(reference) if sources.contains(&reference.source) => {
                description.extend(found.next());
            }
            part => description.push(part.clone()),
        }
    }
    description.extend(found);
    Some(part::fitted(description))
}

#[derive(Debug, Clone, Copy)]
enum Which {
    Known(usize),
    New(usize),
}

/// What there is, by title and by what it refers to.
#[derive(Default)]
struct Index {
    titles: HashMap<String, Which>,
    places: BTreeMap<SourceId, Vec<Passage>>,
}

struct Passage {
    which: Which,
    title: String,
    reference: Reference,
}

impl Index {
    fn add(&mut self, which: Which, title: &str, description: &[Part]) {
        let title = plain(title);
        for reference in description.iter().filter_map(Part::reference) {
            let (title, reference) = (title.clone(), reference.clone());
            let of_source = self.places.entry(reference.source.clone()).or_default();
            of_source.push(Passage { which, title, reference });
        }
        self.titles.entry(title).or_insert(which);
    }

    fn find(&self, title: &str, description: &[Part]) -> Option<Which> {
        let title = plain(title);
        if let Some(which) = self.titles.get(&title) {
            return Some(*which);
        }
        let references = description.iter().filter_map(Part::reference);
        let mut same = references.flat_map(|reference| {
            let of_source = self.places.get(&reference.source).into_iter().flatten();
            of_source.filter(|passage| overlaps(&passage.reference, reference))
        });
        same.find(|passage| strsim::sorensen_dice(&passage.title, &title) >= TITLES_ALIKE)
            .map(|passage| passage.which)
    }
}

/// A title as it is compared.
fn plain(title: &str) -> String {
    folded(&one_line(title))
}

/// Whether two references to one policy share more than half of the shorter one, or quote the same.
fn overlaps(one: &Reference, other: &Reference) -> bool {
    let start = one.offset.max(other.offset);
    let end =
        (one.offset.saturating_add(one.length)).min(other.offset.saturating_add(other.length));
    let shorter = one.length.min(other.length);
    let shared = end.saturating_sub(start);
    let quote = |it: &Reference| plain(&it.excerpt);
    (shorter > 0 && shared > shorter / 2) || quote(one) == quote(other)
}

#[cfg(test)]
mod tests;
