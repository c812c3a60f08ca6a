//! Comparing files with entries. Pure: which files there are and what entries say comes from elsewhere.

use std::collections::{HashMap, HashSet, VecDeque};

use keyward_engine::Json;
use serde::Deserialize;

use crate::source::TreeFile;
use crate::{Operation, Policy, PolicyName, Problem, Step};

/// Why a file cannot be a policy in a namespace.
const NOT_PLAIN: &str = "the name has a colon or an escaped colon (%3A), which other programs that read \
     the namespace cannot tell from the colons of a key; rename the file";
/// Why an entry of a namespace is left alone.
const FOREIGN: &str = "the name in this key has a colon, so the entry is nobody's policy here; copy what \
     only it holds, then delete it";

/// Files by the names of their policies, of which each has one.
#[derive(Debug, Default)]
pub(crate) struct Files {
    by_name: HashMap<String, TreeFile>,
    /// Names whose file cannot be a policy as it is: their entries are left alone.
    blocked: HashSet<String>,
    problems: Vec<Problem>,
    scanned: u64,
}

/// Where entries are kept, as far as names depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// In a store of Keyward's own: every name has a key.
    Own,
    /// In a namespace of Workers KV that other programs read: they cannot tell every name apart.
    Namespace,
}

impl Files {
    /// What each file is called. Two of one name are both left alone, as is what is a problem already.
    pub fn new(files: Vec<TreeFile>, problems: Vec<Problem>, layout: Layout) -> Self {
        let mut found = Self { scanned: files.len() as u64, ..Self::default() };
        for problem in problems {
            found.blocked.extend(PolicyName::from_path(&problem.path).map(String::from));
            found.problems.push(problem);
        }
        let mut named: HashMap<String, Vec<TreeFile>> = HashMap::with_capacity(files.len());
        for file in files {
            match check(&file) {
                Ok(name) if layout == Layout::Namespace && !name.is_plain_in_namespaces() => {
                    found.problems.push(Problem::new(file.path, NOT_PLAIN));
                    found.blocked.insert(name.into());
                }
                Ok(name) => named.entry(name.into()).or_default().push(file),
                Err(reason) => found.problems.push(Problem::new(file.path, reason)),
            }
        }
        for (name, mut files) in named {
            match (files.len(), files.pop()) {
                (1, Some(file)) if !found.blocked.contains(&name) => {
                    found.by_name.insert(name, file);
                }
                (_, last) => {
                    files.extend(last);
                    files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
                    found.collide(name, &files);
                }
            }
        }
        found
    }

    fn collide(&mut self, name: String, files: &[TreeFile]) {
        for file in files {
            let other = files.iter().find(|other| other.path != file.path);
            let reason = match other {
                Some(other) => {
                    format!("its name {name:?} is that of {:?} too; rename one of them", other.path)
                }
                None => format!("its name {name:?} is that of another file that is a problem"),
            };
            self.problems.push(Problem::new(&*file.path, reason));
        }
        self.blocked.insert(name);
    }
}

/// The name of a file's policy, if it can have one.
fn check(file: &TreeFile) -> Result<PolicyName, String> {
    let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    if !matches!(file.sha.len(), 40 | 64) || !file.sha.bytes().all(is_hex) {
        return Err(format!("{:?} is no id of a blob", file.sha));
    }
    if file.path.is_empty() || file.path.starts_with('/') {
        return Err("the path is empty or absolute".to_owned());
    }
    PolicyName::from_path(&file.path).map_err(|error| error.to_string())
}

/// A policy that has to be added or updated.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub name: String,
    pub file: TreeFile,
    /// What the registry has of it.
    old: Option<Old>,
    /// Its title, once it is known: from the entry if the content is the same, else from the content.
    title: Option<String>,
}

#[derive(Debug)]
struct Old {
    sha: String,
    path: String,
    is_of_version_1: bool,
}

/// A policy whose file is gone.
#[derive(Debug)]
struct Gone {
    name: String,
    title: String,
    sha: String,
    path: String,
}

/// A comparison that is under way: every entry is seen once, then the contents that are new.
#[derive(Debug)]
pub(crate) struct Comparison {
    files: Files,
    seen: HashSet<String>,
    wanted: Vec<Wanted>,
    gone: Vec<Gone>,
    /// Entries that are kept under a title that no file is called by.
    by_title: Vec<Gone>,
    /// The titles of policies that stay as they are, with their names.
    kept_titles: HashMap<String, Vec<String>>,
    /// Entries whose keys have no name of a policy.
    foreign: Vec<Problem>,
    entries: u64,
}

/// What a comparison found.
#[derive(Debug)]
pub(crate) struct Compared {
    pub steps: Vec<Step>,
    pub problems: Vec<Problem>,
    pub scanned: u64,
    pub entries: u64,
}

impl Comparison {
    pub fn new(files: Files) -> Self {
        Self {
            files,
            seen: HashSet::new(),
            wanted: Vec::new(),
            gone: Vec::new(),
            by_title: Vec::new(),
            kept_titles: HashMap::new(),
            foreign: Vec::new(),
            entries: 0,
        }
    }

    /// How many entries were seen.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Takes note of an entry, and of the name in its key.
    pub fn see(&mut self, name: &str, entry: &Policy) {
        self.entries += 1;
        let is_of_version_1 = entry.is_of_version_1();
        if let Some(file) = self.files.by_name.get(name) {
            self.seen.insert(name.to_owned());
            let same_content = !is_of_version_1 && entry.sha == file.sha && !entry.title.is_empty();
            if same_content && entry.path == file.path && entry.policy_name == name {
                self.kept_titles.entry(entry.title.clone()).or_default().push(name.to_owned());
                return;
            }
            self.wanted.push(Wanted {
                name: name.to_owned(),
                file: file.clone(),
                old: Some(Old {
                    sha: entry.sha.clone(),
                    path: entry.path.clone(),
                    is_of_version_1,
                }),
                title: same_content.then(|| entry.title.clone()),
            });
            return;
        }
        if self.files.blocked.contains(name) {
            return;
        }
        let gone = Gone {
            name: name.to_owned(),
            title: entry.title.clone(),
            sha: entry.sha.clone(),
            path: entry.path.clone(),
        };
        if is_of_version_1 { self.by_title.push(gone) } else { self.gone.push(gone) }
    }

    /// Takes note of an entry whose key has more parts than that of a policy. A policy of another program
    /// is reported under the name that it has there; notes below a policy are nobody's business.
    pub fn see_foreign(&mut self, name: String, value: &Json) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named {
            policy_name: Option<String>,
            title: Option<String>,
        }
        let Ok(named) = serde_json::from_slice::<Named>(value.as_bytes()) else { return };
        if named.policy_name.or(named.title).is_some() {
            self.foreign.push(Problem::new(name, FOREIGN));
        }
    }

    /// When all entries were seen: what is left is new. From now on contents are read.
    pub fn all_seen(&mut self) {
        let files = std::mem::take(&mut self.files.by_name);
        for (name, file) in files {
            if !self.seen.contains(&name) {
                self.wanted.push(Wanted { name, file, old: None, title: None });
            }
        }
        self.wanted.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    }

    /// The policies whose content has to be read for their title.
    pub fn unread(&mut self) -> impl Iterator<Item = &mut Wanted> {
        self.wanted.iter_mut().filter(|wanted| wanted.title.is_none())
    }

    /// What has to be done, when all contents were read.
    ///
    /// `is_first` says that no run came to an end before: only then is an entry of version 1 deleted that no
    /// file has the title of. Later ones may be what an earlier run left alone.
    pub fn conclude(mut self, is_first: bool) -> Compared {
        let mut problems = self.files.problems;
        // A policy without a title is one whose content was refused.
        self.wanted.retain(|wanted| wanted.title.is_some());
        let mut kept = self.kept_titles;
        for wanted in self.wanted.iter().filter(|wanted| wanted.old.is_some()) {
            let title = wanted.title.clone().unwrap_or_default();
            kept.entry(title).or_default().push(wanted.name.clone());
        }
        let by_title = self.by_title;
        let titles = Titles { wanted: &self.wanted, kept: &kept, is_first };
        let moved = titles.matched(by_title, &mut self.gone, &mut problems);
        self.gone.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let mut renamed: HashMap<&str, VecDeque<&str>> = HashMap::new();
        for gone in self.gone.iter().filter(|gone| !gone.sha.is_empty()) {
            renamed.entry(&gone.sha).or_default().push_back(&gone.name);
        }
        let mut steps = Vec::with_capacity(self.wanted.len() + self.gone.len());
        for wanted in self.wanted {
            let moved_from_title = moved.get(&wanted.name).cloned();
            let is_new = wanted.old.is_none() && moved_from_title.is_none();
            let names = if is_new { renamed.get_mut(&*wanted.file.sha) } else { None };
            let renamed_from = names.and_then(VecDeque::pop_front).map(str::to_owned);
            let old = wanted.old.filter(|old| !old.is_of_version_1);
            steps.push(Step {
                operation: if is_new { Operation::Add } else { Operation::Update },
                policy_name: wanted.name,
                title: wanted.title.unwrap_or_default(),
                sha: wanted.file.sha,
                path: wanted.file.path,
                old_sha: old.as_ref().map(|old| old.sha.clone()),
                old_path: old.map(|old| old.path),
                renamed_from,
                moved_from_title,
            });
        }
        for Gone { name, title, sha, path } in self.gone {
            steps.push(Step {
                operation: Operation::Delete,
                policy_name: name,
                title,
                old_sha: Some(sha.clone()),
                sha,
                old_path: Some(path.clone()),
                path,
                renamed_from: None,
                moved_from_title: None,
            });
        }
        steps.sort_by(|one, other| one.policy_name.cmp(&other.policy_name));
        problems.extend(self.foreign);
        problems.sort_unstable();
        Compared { steps, problems, scanned: self.files.scanned, entries: self.entries }
    }

    /// A file whose content cannot be a policy: its entry is left alone.
    pub fn refuse(&mut self, path: &str, reason: String) {
        self.files.problems.push(Problem::new(path, reason));
    }
}

impl Wanted {
    /// Takes the title from the content; a text without one is called as its file.
    pub fn entitle(&mut self, text: &str) {
        self.title = Some(crate::title(text).unwrap_or_else(|| self.name.clone()));
    }
}

/// What entries of version 1, which are kept under titles, are compared with.
struct Titles<'t> {
    wanted: &'t [Wanted],
    /// The titles of policies that the registry has already, with their names.
    kept: &'t HashMap<String, Vec<String>>,
    is_first: bool,
}

impl Titles<'_> {
    /// Which new policy an entry of version 1 belongs to, by its title. What belongs to none is gone, unless
    /// its file may be one of those that could not be read, or an earlier run may have left the entry alone
    /// because it could not tell whose it is: only a person can.
    fn matched(
        &self,
        by_title: Vec<Gone>,
        gone: &mut Vec<Gone>,
        problems: &mut Vec<Problem>,
    ) -> HashMap<String, String> {
        let mut moved = HashMap::new();
        if by_title.is_empty() {
            return moved;
        }
        let mut titled: HashMap<&str, Vec<&str>> = HashMap::new();
        for new in self.wanted.iter().filter(|wanted| wanted.old.is_none()) {
            titled.entry(new.title.as_deref().unwrap_or_default()).or_default().push(&new.name);
        }
        let is_whole = problems.is_empty();
        for entry in by_title {
            let fitting = titled.get(&*entry.name).or_else(|| titled.get(&*entry.title));
            match fitting.map(Vec::as_slice) {
            Some([name]) if !moved.contains_key(*name) => {
                moved.insert((*name).to_owned(), entry.name);
            }
            Some(names) => problems.push(Problem::new(
                entry.name,
                format!(
                    "this entry of version 1 fits more than one file or is not the only one that \
                     fits ({}); copy what only it holds, then delete it",
                    names.join(", ")
                ),
            )),
            None => match self.kept.get(&*entry.name).or_else(|| self.kept.get(&*entry.title)) {
                Some(names) => problems.push(Problem::new(
                    entry.name,
                    format!(
                        "this entry of version 1 has the title of policies that the registry already \
                         has ({}); copy what only it holds, then delete it",
                        names.join(", ")
                    ),
                )),
                None if is_whole && self.is_first => gone.push(entry),
                None if is_whole => problems.push(Problem::new(
                    entry.name,
                    "no file has the title of this entry of version 1; it stays until somebody deletes it",
                )),
                None => problems.push(Problem::new(
                entry.name,
                "no file that could be read has the title of this entry of version 1; it stays \
                 until the files above can be read",
                )),
            },
        }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: u8) -> TreeFile {
        TreeFile { path: path.to_owned(), sha: format!("{content:040x}") }
    }

    fn entry(name: &str, path: &str, content: u8) -> Policy {
        let text = format!(
            r#"{{"policyName":"{name}","title":"T {name}","status":"active","sha":"{content:040x}","path":"{path}"}}"#
        );
        Policy::of(name, Json::parse(text).unwrap())
    }

    /// Compares; every content that is read is `# {name}`.
    fn compare(files: Vec<TreeFile>, entries: &[(&str, Policy)]) -> Compared {
        let mut comparison = Comparison::new(Files::new(files, Vec::new(), Layout::Own));
        for (name, entry) in entries {
            comparison.see(name, entry);
        }
        comparison.all_seen();
        for wanted in comparison.unread() {
            let text = format!("# T {}\n", wanted.name);
            wanted.entitle(&text);
        }
        comparison.conclude(true)
    }

    fn told(compared: &Compared) -> Vec<String> {
        let told = |step: &Step| {
            let from = step.renamed_from.as_ref().map(|from| format!(" from {from}"));
            format!("{} {}{}", step.operation.as_str(), step.policy_name, from.unwrap_or_default())
        };
        compared.steps.iter().map(told).collect()
    }

    #[test]
    fn absent_is_added_other_content_or_path_updated_gone_deleted() {
        let files = vec![
            file("p/new.md", 1),
            file("p/same.md", 2),
            file("p/changed.md", 3),
            file("q/moved.md", 4),
        ];
        let entries = [
            ("same", entry("same", "p/same.md", 2)),
            ("changed", entry("changed", "p/changed.md", 9)),
            ("moved", entry("moved", "p/moved.md", 4)),
            ("gone", entry("gone", "p/gone.md", 5)),
        ];
        let compared = compare(files, &entries);
        assert_eq!(told(&compared), ["update changed", "delete gone", "update moved", "add new"]);
        assert_eq!((compared.scanned, compared.entries), (4, 4));
        let moved = &compared.steps[2];
        assert_eq!(moved.old_path.as_deref(), Some("p/moved.md"));
        assert_eq!(moved.title, "T moved");
    }

    #[test]
    fn the_same_content_under_a_new_name_is_a_rename_once() {
        let files = vec![file("new-a.md", 1), file("new-b.md", 1)];
        let compared = compare(files, &[("old", entry("old", "old.md", 1))]);
        assert_eq!(told(&compared), ["add new-a from old", "add new-b", "delete old"]);
    }

    #[test]
    fn files_of_one_name_are_left_alone_with_their_entry() {
        // The second is the same name, written with a combining mark.
        let files = vec![file("a/é.md", 1), file("b/e\u{301}.md", 2), file("x.MD", 3)];
        let compared = compare(files, &[("é", entry("é", "c/é.md", 9))]);
        assert_eq!(told(&compared), ["add x"]);
        let paths: Vec<&str> = compared.problems.iter().map(|problem| &*problem.path).collect();
        assert_eq!(paths, ["a/é.md", "b/e\u{301}.md"]);
    }

    #[test]
    fn an_entry_whose_file_is_a_problem_stays() {
        let problem = Problem::new("p/linked.md", "a link");
        let mut comparison = Comparison::new(Files::new(Vec::new(), vec![problem], Layout::Own));
        comparison.see("linked", &entry("linked", "p/linked.md", 1));
        comparison.see("other", &entry("other", "p/other.md", 1));
        comparison.all_seen();
        assert_eq!(told(&comparison.conclude(true)), ["delete other"]);
    }

    #[test]
    fn a_name_that_a_namespace_cannot_hold_as_it_is_is_a_problem_there() {
        let names = ["a", "a:b", "50% off", "x%3Ay", "x%2525", "x%253Ay", "%3a"];
        let compared = |layout| {
            let files = names.iter().map(|name| file(&format!("{name}.md"), 1)).collect();
            let mut comparison = Comparison::new(Files::new(files, Vec::new(), layout));
            comparison.see("a:b", &entry("a:b", "a:b.md", 9));
            comparison.all_seen();
            for wanted in comparison.unread() {
                wanted.entitle("# T\n");
            }
            comparison.conclude(true)
        };
        let own = compared(Layout::Own);
        assert_eq!((own.steps.len(), own.problems.len()), (names.len(), 0));
        let compared = compared(Layout::Namespace);
        assert_eq!(told(&compared), ["add %3a", "add 50% off", "add a", "add x%2525"]);
        let paths: Vec<&str> = compared.problems.iter().map(|problem| &*problem.path).collect();
        assert_eq!(paths, ["a:b.md", "x%253Ay.md", "x%3Ay.md"]);
    }

    #[test]
    fn a_content_that_is_refused_leaves_its_entry() {
        let files = vec![file("a.md", 1), file("b.md", 1)];
        let mut comparison = Comparison::new(Files::new(files, Vec::new(), Layout::Own));
        comparison.see("a", &entry("a", "a.md", 2));
        comparison.all_seen();
        comparison.refuse("a.md", "not UTF-8".to_owned());
        comparison.refuse("b.md", "not UTF-8".to_owned());
        let compared = comparison.conclude(true);
        assert!(compared.steps.is_empty());
        assert_eq!(compared.problems.len(), 2);
    }

    #[test]
    fn an_entry_of_version_1_moves_to_the_file_with_its_title() {
        let old = Policy::of("T new", Json::parse(r#"{"title":"T new","fileNo":"1"}"#).unwrap());
        let gone = Policy::of("T gone", Json::parse(r#"{"title":"T gone"}"#).unwrap());
        let entries = [("T new", old.clone()), ("T gone", gone)];
        let compared = compare(vec![file("new.md", 1)], &entries);
        assert_eq!(told(&compared), ["delete T gone", "update new"]);
        assert_eq!(compared.steps[1].moved_from_title.as_deref(), Some("T new"));
        // While a file cannot be read, nobody knows whose an entry is.
        let files = vec![file("a/x.md", 1), file("b/x.md", 2)];
        let compared = compare(files, &[("T new", old)]);
        assert!(compared.steps.is_empty());
        assert_eq!(compared.problems.len(), 3);
    }

    #[test]
    fn an_entry_of_version_1_under_the_name_of_a_file_is_updated_in_place() {
        let old = Policy::of("학칙", Json::parse(r#"{"title":"학칙"}"#).unwrap());
        let compared = compare(vec![file("학칙.md", 1)], &[("학칙", old)]);
        assert_eq!(told(&compared), ["update 학칙"]);
        assert_eq!(compared.steps[0].moved_from_title, None);
        assert_eq!(compared.steps[0].old_sha, None);
    }
}
