//! The policies of a page, and what is known of each.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use keyward_engine::Scan;
use keyward_extract::Language;
use keyward_key::{Key, KeyRange};
use keyward_locks::Mode;
use serde::{Deserialize, Serialize};

use crate::{
    Activity, Course, Document, Issue, Page, PageId, Reference, Result, SourceId, Task, Workspace,
    places, workspace::KEYWARD,
};

/// The policies of a page, by their ids.
pub type Catalog = BTreeMap<SourceId, Listed>;

/// What is known of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// What the document calls itself, once it was extracted; until then the name of its file.
    pub title: String,
    /// The name of its file.
    pub name: String,
    /// When this state of it came to be.
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub created: Timestamp,
    /// The language it was written in, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// Whether its text is there.
    pub extracted: bool,
    /// Which translations are there.
    pub translations: Vec<String>,
}

/// How many keys are read together.
const TOGETHER: usize = 200;

/// The policies of a page as they were found, with what is to be removed.
struct Sighted {
    catalog: Catalog,
    /// Originals of attachments that have changed since, or are gone.
    outdated: Vec<Key>,
}

impl Workspace {
    /// The policies of a page. Only reads: nothing is locked, removed or marked. What was made of
    /// attachments that are gone is left out, and one that has changed since counts as not extracted.
    pub async fn listed_policies(&self, page: &PageId) -> Result<Catalog> {
        let found = self.seen(page).await?;
        let cached = self.cached(page).await?;
        Ok(self.sighted(&found, cached).await?.catalog)
    }

    /// The policies of a page. What was made of attachments that are gone, or that have changed since,
    /// is removed, and issues that refer to them are marked stale.
    pub async fn policies(&self, page: &PageId, course: &Course) -> Result<Catalog> {
        course.enter(Activity::Locking, "policies").await?;
        // Before anything is locked for a page that is not there.
        self.found(page).await?;
        let guard = self.hold(page, &["policies"], Mode::Exclusive, "policies").await?;
        course.enter(Activity::Scanning, page.as_str()).await?;
        let found = self.found_locked(page).await?;
        let cached = self.cached(page).await?;
        course.enter(Activity::Purging, page.as_str()).await?;
        let Sighted { catalog, outdated } = self.sighted(&found, cached).await?;
        for key in &outdated {
            self.cache().invalidate(key).await?;
        }
        guard.release().await?;
        self.mark_issues(&found).await?;
        Ok(catalog)
    }

    /// Which documents there are of a page: sources, with the languages of their translations.
    async fn cached(&self, page: &PageId) -> Result<BTreeMap<SourceId, BTreeSet<String>>> {
        let mut cached: BTreeMap<SourceId, BTreeSet<String>> = BTreeMap::new();
        let mut scan = Scan::new(places::policies(page)).limit(TOGETHER).keys_only();
        loop {
            let read = self.store().scan(&scan).await?;
            for row in read.rows {
                let mut segments = row.key.segments().past(2);
                let source = segments.next().and_then(|source| SourceId::new(&source).ok());
                let Some(source) = source else { continue };
                let languages = cached.entry(source).or_default();
                languages.extend(segments.next().map(|language| language.into_owned()));
            }
            match read.next {
                Some(cursor) => scan = scan.after(Some(cursor)),
                None => return Ok(cached),
            }
        }
    }

    /// Compares what is cached with the attachments of a page.
    async fn sighted(
        &self,
        page: &Page,
        mut cached: BTreeMap<SourceId, BTreeSet<String>>,
    ) -> Result<Sighted> {
        let mut catalog = Catalog::new();
        let mut outdated = Vec::new();
        for attachment in &page.attachments {
            let source = &attachment.source;
            let translations = cached.remove(source);
            let key = places::policy(&page.id, source, None)?;
            let entry = match &translations {
                Some(_) => self.store().get(&key).await?,
                None => None,
            };
            let document = entry.map(|entry| Document::from_entry(&key, &entry)).transpose()?;
            let document = document.filter(|document| document.modified >= attachment.created);
            if document.is_none() && translations.is_some() {
                outdated.push(key);
            }
            let translations = translations.filter(|_| document.is_some()).unwrap_or_default();
            let (title, language) = match &document {
                Some(document) => (document.title.clone(), document.language),
                None => (attachment.name.clone(), None),
            };
            catalog.insert(
                source.clone(),
                Listed {
                    title,
                    name: attachment.name.clone(),
                    created: attachment.created,
                    language,
                    extracted: document.is_some(),
                    translations: translations.into_iter().collect(),
                },
            );
        }
        for vanished in cached.keys() {
            outdated.push(places::policy(&page.id, vanished, None)?);
        }
        Ok(Sighted { catalog, outdated })
    }

    /// Marks the issues that refer to something that has changed or is gone; has the page analysed
    /// again, if the settings say so.
    ///
    /// What is marked follows from the page alone, so that whoever was killed on the way here is made
    /// good for by the next.
    pub(crate) async fn mark_issues(&self, page: &Page) -> Result<()> {
        let states: BTreeMap<&SourceId, Timestamp> = page
            .attachments
            .iter()
            .map(|attachment| (&attachment.source, attachment.created))
            .collect();
        let issues = self.issues().of(&page.id)?;
        let known = issues.all().await?;
        // Those of which an issue refers to an older state, or to one that is gone.
        let is_old = |reference: &&Reference| {
            states.get(&reference.source).is_none_or(|created| reference.modified < *created)
        };
        let sources: BTreeSet<&SourceId> = known
            .iter()
            .filter(|issue| !issue.stale)
            .flat_map(Issue::references)
            .filter(is_old)
            .map(|reference| &reference.source)
            .collect();
        let mut marked = 0;
        for source in sources {
            marked += issues.mark_stale(source, states.get(source).copied(), KEYWARD).await?;
        }
        let any_stale = marked > 0 || known.iter().any(|issue| issue.stale && !issue.archived);
        if self.options().analyze_again && self.has_models() && any_stale {
            let newest = page.attachments.iter().map(|attachment| attachment.created).max();
            let state = newest.map_or(0, Timestamp::as_millisecond);
            let id = format!("analyze-again:{}:{state}", page.id);
            self.submit(Task::Analyze { page: page.id.clone(), again: false }, KEYWARD, Some(id))
                .await?;
        }
        Ok(())
    }

    /// Removes what was made of an attachment that is not there, if it still is not once nobody works
    /// on it.
    pub(crate) async fn forget_vanished(&self, page: &PageId, source: &SourceId) -> Result<()> {
        let key = places::policy(page, source, None)?;
        let below = Scan::new(KeyRange::subtree(&key)).limit(1).keys_only();
        if !self.store().scan(&below).await?.rows.is_empty() {
            let path = ["policies", source.as_str()];
            let purpose = "forget a policy that is gone";
            let guard = self.hold(page, &path, Mode::Exclusive, purpose).await?;
            let found = self.found_locked(page).await?;
            if found.attachments.iter().any(|attachment| attachment.source == *source) {
                return Ok(());
            }
            self.cache().invalidate(&key).await?;
            guard.release().await?;
        }
        self.issues().of(page)?.mark_stale(source, None, KEYWARD).await?;
        Ok(())
    }
}
