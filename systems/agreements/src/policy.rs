//! One policy: as it was attached, or translated; made once for everybody who asks.

use std::sync::{Mutex, PoisonError};

use keyward_cache::{Error as CacheError, Fetch, Source as Made};
use keyward_engine::Json;
use keyward_extract::Language;
use keyward_key::Key;

use crate::{
    Activity, Attachment, Course, Document, Error, Page, PageId, Result, SourceId, Workspace,
    places, translation, workspace::KEYWARD,
};

impl Workspace {
    /// A policy as Markdown, in a language if one is named. Of all who ask at the same time, in all
    /// processes, one extracts it and one translates it; the others wait, and get the same.
    ///
    /// What was made of an older state of the attachment is dropped with all its translations, and
    /// issues that refer to it are marked stale.
    pub async fn policy(
        &self,
        page: &PageId,
        source: &SourceId,
        language: Option<Language>,
        course: &Course,
    ) -> Result<Document> {
        course.enter(Activity::Scanning, page.as_str()).await?;
        let found = self.found(page).await?;
        let attachment = self.attachment(&found, source).await?;
        let original = self.original(page, attachment, course).await?;
        match language {
            Some(language) if original.language != Some(language) => {
                self.translated(page, attachment, &original, language, course).await
            }
            _ => Ok(original),
        }
    }

    /// The same, if it is there and up to date. Only reads: nothing is made, removed or locked.
    pub async fn cached_policy(
        &self,
        page: &PageId,
        source: &SourceId,
        language: Option<Language>,
    ) -> Result<Option<Document>> {
        let found = self.seen(page).await?;
        let attachment = attached(&found, source)?;
        let made = Made::Modified(attachment.created);
        let key = places::policy(page, source, None)?;
        let Some(original) = self.cache().get(&key, &made).await? else { return Ok(None) };
        let original = Document::from_json(&key, &original.value)?;
        let Some(language) = language.filter(|language| original.language != Some(*language))
        else {
            return Ok(Some(original));
        };
        let key = places::policy(page, source, Some(language.as_str()))?;
        let translated = self.cache().get(&key, &made).await?;
        translated.map(|cached| Document::from_json(&key, &cached.value)).transpose()
    }

    /// The attachment of a policy. What was made of one that is no longer there is removed.
    async fn attachment<'p>(&self, page: &'p Page, source: &SourceId) -> Result<&'p Attachment> {
        let found = attached(page, source);
        if found.is_err() {
            self.forget_vanished(&page.id, source).await?;
        }
        found
    }

    pub(crate) async fn original(
        &self,
        page: &PageId,
        attachment: &Attachment,
        course: &Course,
    ) -> Result<Document> {
        let key = places::policy(page, &attachment.source, None)?;
        let fetch = self.fetch(page, attachment, &["policies", attachment.source.as_str()])?;
        course.enter(Activity::Locking, attachment.source.as_str()).await?;
        self.once(&key, &fetch, || self.extracted(page, attachment, course)).await
    }

    async fn extracted(
        &self,
        page: &PageId,
        attachment: &Attachment,
        course: &Course,
    ) -> Result<Document> {
        let source = &attachment.source;
        course.enter(Activity::Fetching, &attachment.name).await?;
        let bytes = self.source().read(page, source).await?.ok_or_else(|| {
            Error::UnknownPolicy { page: page.to_string(), source_id: source.to_string() }
        })?;
        course.enter(Activity::Extracting, &attachment.name).await?;
        let extracted = self.extractor().extract(attachment, bytes).await?;
        // Before anybody can see the new document: whoever sees it sees the marks as well.
        course.enter(Activity::Caching, &attachment.name).await?;
        let issues = self.issues().of(page)?;
        issues.mark_stale(source, Some(attachment.created), KEYWARD).await?;
        let title = Some(extracted.title).filter(|title| !title.is_empty());
        Ok(Document {
            original: true,
            language: extracted.language,
            source: source.clone(),
            created: self.now().max(attachment.created),
            title: title.unwrap_or_else(|| attachment.name.clone()),
            content: extracted.markdown,
            modified: attachment.created,
            made: None,
        })
    }

    async fn translated(
        &self,
        page: &PageId,
        attachment: &Attachment,
        original: &Document,
        language: Language,
        course: &Course,
    ) -> Result<Document> {
        let source = attachment.source.as_str();
        let key = places::policy(page, &attachment.source, Some(language.as_str()))?;
        let fetch = self
            .fetch(page, attachment, &["policies", source, language.as_str()])?
            .depends_on(places::policy(page, &attachment.source, None)?);
        // What is there is given out also where nothing could be translated.
        if let Some(cached) = self.cache().get(&key, &fetch.source).await? {
            return Document::from_json(&key, &cached.value);
        }
        let models = self.models()?;
        course.enter(Activity::Locking, &format!("{source}:{language}")).await?;
        self.once(&key, &fetch, || async {
            let mut document = translation::translate(
                models,
                original,
                language,
                self.options().translate_chars_max,
                course,
            )
            .await?;
            document.created = self.now().max(original.created);
            course.enter(Activity::Caching, source).await?;
            Ok(document)
        })
        .await
    }

    fn fetch(&self, page: &PageId, attachment: &Attachment, lock: &[&str]) -> Result<Fetch> {
        let options = self.options();
        Ok(Fetch::of(Made::Modified(attachment.created))
            .under(self.root(page)?, places::lock(lock)?)
            .lease(options.lease)
            .wait_max(options.wait_max))
    }

    /// A document that one of all callers makes. That one gets its own error, with its code; the
    /// others get what it said.
    async fn once<F, C>(&self, key: &Key, fetch: &Fetch, make: F) -> Result<Document>
    where
        F: FnOnce() -> C,
        C: Future<Output = Result<Document>>,
    {
        let own = Mutex::new(None);
        let failed = &own;
        let cached = self
            .cache()
            .get_or_compute(key, fetch, || async move {
                let made: Result<Json> = match make().await {
                    Ok(document) => document.to_json(),
                    Err(error) => Err(error),
                };
                made.map_err(|error| {
                    let said = error.to_string();
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    said
                })
            })
            .await;
        match cached {
            Ok(cached) => Document::from_json(key, &cached.value),
            Err(error @ CacheError::Failed { .. }) => {
                let own = own.into_inner().unwrap_or_else(PoisonError::into_inner);
                Err(own.unwrap_or(Error::Cache(error)))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The attachment of a page that a policy comes from.
fn attached<'p>(page: &'p Page, source: &SourceId) -> Result<&'p Attachment> {
    let found = page.attachments.iter().find(|attachment| attachment.source == *source);
    found.ok_or_else(|| Error::UnknownPolicy {
        page: page.id.to_string(),
        source_id: source.to_string(),
    })
}
