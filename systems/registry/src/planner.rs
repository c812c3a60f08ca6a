//! From a commit and the registry to a plan.

use std::collections::{BTreeMap, HashSet};

use keyward_engine::{Json, Scan};
use keyward_key::Key;

use crate::compare::{Comparison, Files, Layout};
use crate::source::{Blob, Changes, FileChange, TreeFile};
use crate::state::State;
use crate::{Error, Plan, Policy, PolicyName, Problem, Progress, Registry, Result, SyncOptions};

/// The engine whose namespaces other programs read.
const NAMESPACE_ENGINE: &str = "cloudflare-kv";
/// How many entries are read at once.
const PAGE: usize = 1_000;
/// How many contents are read at once.
const BLOBS: usize = 50;

/// What a registry was left as.
pub(crate) struct Before {
    pub state: State,
    pub last_commit: Option<String>,
    /// The metadata of the last commit's entry: in a namespace, whether it is text without quotes.
    pub last_commit_metadata: Option<Json>,
}

impl Before {
    /// The commit that everything is exactly as, if it is as one.
    fn clean_commit(&self, fingerprint: &str) -> Option<&str> {
        let State { commit, clean, fingerprint: known, .. } = &self.state;
        let is_known = *clean && known == fingerprint && *commit == self.last_commit;
        commit.as_deref().filter(|_| is_known)
    }

    /// Whether the original left the registry exactly as a plan wants it, and no run of ours wrote to it: then
    /// what it says of its last run stays.
    pub fn is_as_the_original_left_it(&self, plan: &Plan) -> bool {
        self.state.commit.is_none()
            && self.last_commit.as_deref() == Some(&*plan.commit)
            && plan.steps.is_empty()
            && plan.problems.is_empty()
    }
}

impl Registry {
    /// What the last sync left, and whether it is on record that this registry keeps its policies here.
    pub(crate) async fn before(&self) -> Result<(Before, bool)> {
        let places = &self.inner.places;
        let keys = [places.state(), places.last_commit.clone(), places.occupied.clone()];
        let mut found = self.inner.store.get_many(&keys).await?.into_iter();
        let (state, last_commit) = (found.next().flatten(), found.next().flatten());
        let occupied = found.next().flatten();
        if let Some(other) = &occupied {
            let name = serde_json::from_slice::<String>(other.value.as_bytes()).ok();
            if name.as_deref() != Some(self.name()) {
                let other = name.unwrap_or_else(|| other.value.as_str().to_owned());
                return Err(Error::Occupied { other });
            }
        }
        let state = match state {
            Some(entry) => State::decode(&keys[0], &entry)?,
            None => State::new(self.now()),
        };
        let last_commit_metadata = last_commit.as_ref().and_then(|entry| entry.metadata.clone());
        let last_commit = last_commit
            .map(|entry| {
                serde_json::from_slice::<String>(entry.value.as_bytes())
                    .map_err(|error| Error::damaged(&keys[1], error))
            })
            .transpose()?;
        Ok((Before { state, last_commit, last_commit_metadata }, occupied.is_some()))
    }

    /// Whether there is nothing to do at a commit.
    pub(crate) fn is_at(&self, commit: &str, before: &Before, options: &SyncOptions) -> bool {
        !options.full && before.clean_commit(&self.inner.fingerprint) == Some(commit)
    }

    /// What has to be done to be at a commit.
    pub(crate) async fn plan_for(
        &self,
        commit: &str,
        before: &Before,
        options: &SyncOptions,
        seen: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Plan> {
        if !options.full
            && let Some(old) = before.clean_commit(&self.inner.fingerprint)
            && let Some(changes) = self.inner.source.changes(old, commit).await?
            && let Some(plan) = self.plan_since(commit, before, changes, seen).await?
        {
            return Ok(plan);
        }
        self.plan_whole(commit, before, seen).await
    }

    /// Compares the whole tree with all entries, a page of them at a time.
    async fn plan_whole(
        &self,
        commit: &str,
        before: &Before,
        seen: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Plan> {
        let tree = self.inner.source.tree(commit).await?;
        self.check_folder(&tree.problems)?;
        let layout = self.layout();
        let mut comparison = Comparison::new(Files::new(tree.files, tree.problems, layout));
        let mut scan = Scan::new(self.inner.places.policies()).limit(PAGE);
        loop {
            let page = self.inner.store.scan(&scan).await?;
            for row in page.rows {
                let Some(entry) = row.entry else { continue };
                match self.inner.places.name_of(&row.key) {
                    Some(name) => comparison.see(&name, &Policy::of(&name, entry.value)),
                    None if layout == Layout::Namespace => {
                        let name = self.inner.places.foreign_name_of(&row.key);
                        comparison.see_foreign(name, &entry.value);
                    }
                    None => {}
                }
            }
            seen(Progress::Comparing { compared: comparison.entries() });
            match page.next {
                Some(next) => scan = scan.after(Some(next)),
                None => break,
            }
        }
        self.conclude(comparison, commit, before, None, seen).await
    }

    /// Compares what changed since the registry was exactly as an older commit. `None` if it is not as
    /// it was left then: the whole has to be looked at.
    async fn plan_since(
        &self,
        commit: &str,
        before: &Before,
        changes: Changes,
        seen: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Option<Plan>> {
        self.check_folder(&changes.problems)?;
        let paths = changes.files.iter().map(|change| &*change.path);
        let paths = paths.chain(changes.problems.iter().map(|problem| &*problem.path));
        let touched: BTreeMap<String, Key> = paths
            .filter_map(|path| PolicyName::from_path(path).ok().map(String::from))
            .map(|name| (name.clone(), self.inner.places.policy(&name)))
            .collect();
        let keys: Vec<Key> = touched.values().cloned().collect();
        let found = self.inner.store.get_many(&keys).await?;
        let entries: BTreeMap<&str, Policy> = touched
            .keys()
            .zip(found)
            .filter_map(|(name, entry)| Some((&**name, Policy::of(name, entry?.value))))
            .collect();
        seen(Progress::Comparing { compared: entries.len() as u64 });
        let Some(files) = files_now(&changes.files, &entries) else { return Ok(None) };
        let scanned = changes.files.len() as u64;
        let mut comparison = Comparison::new(Files::new(files, changes.problems, self.layout()));
        for (name, entry) in &entries {
            comparison.see(name, entry);
        }
        self.conclude(comparison, commit, before, Some(scanned), seen).await.map(Some)
    }

    /// Reads the contents that are new, and makes the plan.
    async fn conclude(
        &self,
        mut comparison: Comparison,
        commit: &str,
        before: &Before,
        changed: Option<u64>,
        seen: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Plan> {
        comparison.all_seen();
        let blobs_read = self.read_titles(&mut comparison, seen).await?;
        let compared = comparison.conclude(before.last_commit.is_none());
        Ok(Plan {
            registry: self.name().to_owned(),
            commit: commit.to_owned(),
            previous_commit: before.last_commit.clone(),
            steps: compared.steps,
            problems: compared.problems,
            scanned: changed.unwrap_or(compared.scanned),
            entries: if changed.is_some() { before.state.entries } else { compared.entries },
            whole: changed.is_none(),
            blobs_read,
        })
    }

    async fn read_titles(
        &self,
        comparison: &mut Comparison,
        seen: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<u64> {
        let mut refused: Vec<(String, String)> = Vec::new();
        let (mut read, total) = (0, comparison.unread().count() as u64);
        let mut unread = comparison.unread();
        loop {
            let mut some: Vec<_> = unread.by_ref().take(BLOBS).collect();
            if some.is_empty() {
                break;
            }
            let shas = some.iter().map(|wanted| wanted.file.sha.clone()).collect();
            let blobs = self.inner.source.blobs(shas).await?;
            read += some.len() as u64;
            for (wanted, blob) in some.iter_mut().zip(blobs) {
                let reason = match &blob {
                    Blob::Content(bytes) => match std::str::from_utf8(bytes) {
                        Ok(text) => {
                            wanted.entitle(text);
                            continue;
                        }
                        Err(error) => format!(
                            "it is not UTF-8 from byte {} on; save it as UTF-8",
                            error.valid_up_to()
                        ),
                    },
                    Blob::TooLarge(bytes) => format!(
                        "it has {bytes} bytes, more than {}; make it smaller, or raise \
                         limits.blob_bytes_max",
                        self.settings().limits.blob_bytes_max
                    ),
                };
                refused.push((wanted.file.path.clone(), reason));
            }
            seen(Progress::Reading { read, total });
        }
        drop(unread);
        for (path, reason) in refused {
            comparison.refuse(&path, reason);
        }
        self.inner.metrics.blobs_read.inc_by(read);
        Ok(read)
    }

    /// How entries are kept here.
    pub(crate) fn layout(&self) -> Layout {
        match self.inner.store.capabilities().engine {
            NAMESPACE_ENGINE => Layout::Namespace,
            _ => Layout::Own,
        }
    }

    /// A folder that is not there is a wrong setting, not a reason to delete everything.
    fn check_folder(&self, problems: &[Problem]) -> Result<()> {
        let folder = self.settings().folder.trim_matches('/');
        let missing = problems.iter().find(|problem| problem.path == folder);
        match missing.filter(|_| !folder.is_empty()) {
            Some(problem) => {
                let message = format!("{folder}: {}", problem.reason);
                Err(Error::Source { message, retryable: false })
            }
            None => Ok(()),
        }
    }
}

/// The files that have one of the touched names now: those that changed, and of the others the one that
/// an entry tells of, since the registry is exactly as the older commit. `None` if it is not.
fn files_now(changes: &[FileChange], entries: &BTreeMap<&str, Policy>) -> Option<Vec<TreeFile>> {
    let mut changed: HashSet<&str> = HashSet::with_capacity(changes.len());
    let mut files = Vec::new();
    for change in changes {
        changed.insert(&change.path);
        if let Some(old) = &change.old {
            let name = PolicyName::from_path(&change.path).ok()?;
            let entry = entries.get(name.as_str())?;
            if entry.path != change.path || entry.sha != *old {
                return None;
            }
        }
        if let Some(new) = &change.new {
            files.push(TreeFile { path: change.path.clone(), sha: new.clone() });
        }
    }
    for entry in entries.values().filter(|entry| !changed.contains(&*entry.path)) {
        if entry.is_of_version_1() {
            return None;
        }
        files.push(TreeFile { path: entry.path.clone(), sha: entry.sha.clone() });
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, path: &str, sha: &str) -> Policy {
        let text =
            format!(r#"{{"policyName":"{name}","title":"t","sha":"{sha}","path":"{path}"}}"#);
        Policy::of(name, Json::parse(text).unwrap())
    }

    fn change(path: &str, old: Option<&str>, new: Option<&str>) -> FileChange {
        FileChange { path: path.into(), old: old.map(Into::into), new: new.map(Into::into) }
    }

    #[test]
    fn a_file_that_did_not_change_is_known_from_its_entry() {
        let entries = BTreeMap::from([("x", entry("x", "a/x.md", "1"))]);
        let files = files_now(&[change("b/x.md", None, Some("2"))], &entries).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| &*file.path).collect();
        assert_eq!(paths, ["b/x.md", "a/x.md"]);
        let moved = [change("a/x.md", Some("1"), None), change("b/x.md", None, Some("1"))];
        assert_eq!(files_now(&moved, &entries).unwrap().len(), 1);
    }

    #[test]
    fn a_registry_that_is_not_as_it_was_left_is_looked_at_as_a_whole() {
        let changes = [change("a/x.md", Some("1"), Some("2"))];
        assert!(files_now(&changes, &BTreeMap::new()).is_none());
        for wrong in [entry("x", "a/x.md", "9"), entry("x", "c/x.md", "1")] {
            assert!(files_now(&changes, &BTreeMap::from([("x", wrong)])).is_none());
        }
        let right = BTreeMap::from([("x", entry("x", "a/x.md", "1"))]);
        assert!(files_now(&changes, &right).is_some());
    }
}
