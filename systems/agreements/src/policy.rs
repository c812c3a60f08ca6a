//! One policy: as it was attached, or translated; made once for everybody who asks.

use std::sync::{Mutex, PoisonError};

use keyward_cache::{Error as CacheError, Fetch, Source as Made};
use keyward_engine::{BoxFuture, Json};
use keyward_extract::Language;
use keyward_key::Key;

use crate::{
    Activity, Attachment, Course, Document, Error, Page, PageId, Result, SourceId, Workspace,
    places, translation, workspace::KEYWARD,
};

/// When a document is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Making {
    /// If it is not there, or is out of date.
    Missing,
    /// In any case.
    Again,
}

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
        self.document(page, source, language, Making::Missing, course).await
    }

    /// The same, extracted or translated again, also if what is there is up to date: for a document that
    /// turned out to be wrong. What is there is given out until there is a new one, and stays if that cannot
    /// be made. Of all who ask for this at the same time, one makes it.
    ///
    /// A translation that is made again leaves the original and all other translations as they are. So does
    /// an original whose text comes out the same; if it is another one, its translations go, and issues that
    /// refer to it are marked stale.
    pub async fn redo_policy(
        &self,
        page: &PageId,
        source: &SourceId,
        language: Option<Language>,
        course: &Course,
    ) -> Result<Document> {
        self.document(page, source, language, Making::Again, course).await
    }

    fn document<'a>(
        &'a self,
        page: &'a PageId,
        source: &'a SourceId,
        language: Option<Language>,
        making: Making,
        course: &'a Course,
    ) -> BoxFuture<'a, Result<Document>> {
        Box::pin(async move {
            course.enter(Activity::Scanning, page.as_str()).await?;
            let found = self.found(page).await?;
            let attachment = self.attachment(&found, source).await?;
            if let Some(language) = language {
                let original = self.original(page, attachment, Making::Missing, course).await?;
                if original.language != Some(language) {
                    return self
                        .translated(page, attachment, &original, language, making, course)
                        .await;
                }
                if making == Making::Missing {
                    return Ok(original);
                }
            }
            self.original(page, attachment, making, course).await
        })
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

    async fn original(
        &self,
        page: &PageId,
        attachment: &Attachment,
        making: Making,
        course: &Course,
    ) -> Result<Document> {
        let key = places::policy(page, &attachment.source, None)?;
        let fetch = self.fetch(page, attachment, &["policies", attachment.source.as_str()])?;
        course.enter(Activity::Locking, attachment.source.as_str()).await?;
        let extract = |held| self.extracted(page, attachment, held, course);
        self.once(&key, &fetch, making, extract).await
    }

    /// What an attachment says. If that is what `held` says, which is given out now, it is `held` itself.
    async fn extracted(
        &self,
        page: &PageId,
        attachment: &Attachment,
        held: Option<Document>,
        course: &Course,
    ) -> Result<Document> {
        let source = &attachment.source;
        course.enter(Activity::Fetching, &attachment.name).await?;
        let bytes = self.source().read(page, source).await?.ok_or_else(|| {
            Error::UnknownPolicy { page: page.to_string(), source_id: source.to_string() }
        })?;
        course.enter(Activity::Extracting, &attachment.name).await?;
        let extracted = self.extractor().extract(attachment, bytes).await?;
        let title = Some(extracted.title).filter(|title| !title.is_empty());
        let title = title.unwrap_or_else(|| attachment.name.clone());
        // Of the same attachment there is another text: no reference to the old one is good any more.
        let newer_than = match held {
            Some(held)
                if (&held.title, &held.content, held.language)
                    == (&title, &extracted.markdown, extracted.language) =>
            {
                return Ok(held);
            }
            Some(_) => None,
            None => Some(attachment.created),
        };
        // Before anybody can see the new document: whoever sees it sees the marks as well.
        course.enter(Activity::Caching, &attachment.name).await?;
        self.issues().of(page)?.mark_stale(source, newer_than, KEYWARD).await?;
        Ok(Document {
            original: true,
            language: extracted.language,
            source: source.clone(),
            created: self.now().max(attachment.created),
            title,
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
        making: Making,
        course: &Course,
    ) -> Result<Document> {
        let source = attachment.source.as_str();
        let key = places::policy(page, &attachment.source, Some(language.as_str()))?;
        let fetch = self
            .fetch(page, attachment, &["policies", source, language.as_str()])?
            .depends_on(places::policy(page, &attachment.source, None)?);
        // What is there is given out also where nothing could be translated.
        if making == Making::Missing
            && let Some(cached) = self.cache().get(&key, &fetch.source).await?
        {
            return Document::from_json(&key, &cached.value);
        }
        let models = self.models()?;
        course.enter(Activity::Locking, &format!("{source}:{language}")).await?;
        self.once(&key, &fetch, making, |_| async {
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

    /// A document that one of all callers makes, which is told what is given out now if it is made again.
    /// That one gets its own error, with its code; the others get what it said.
    async fn once<F, C>(
        &self,
        key: &Key,
        fetch: &Fetch,
        making: Making,
        make: F,
    ) -> Result<Document>
    where
        F: FnOnce(Option<Document>) -> C,
        C: Future<Output = Result<Document>>,
    {
        let own = Mutex::new(None);
        let failed = &own;
        let compute = |held: Option<Json>| async move {
            // What cannot be read is made again like anything else.
            let document = held.as_ref().and_then(|held| Document::from_json(key, held).ok());
            let made = match make(document.clone()).await {
                Ok(made) if Some(&made) == document.as_ref() => {
                    held.map_or_else(|| made.to_json(), Ok)
                }
                Ok(made) => made.to_json(),
                Err(error) => Err(error),
            };
            made.map_err(|error| {
                let said = error.to_string();
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                said
            })
        };
        let cached = match making {
            Making::Missing => self.cache().get_or_compute(key, fetch, || compute(None)).await,
            Making::Again => self.cache().redo(key, fetch, compute).await,
        };
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
