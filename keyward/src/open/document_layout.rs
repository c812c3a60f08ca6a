//! `layout=document`: agent data in the documents of another program.

use std::sync::Arc;
use std::time::Duration;

use keyward_agents::DocumentLayout;
use keyward_engine::{
    BoxFuture, Consistency, Document, DocumentLimits, DocumentList, DocumentPage, Documents, Error,
    ErrorKind, Json, Result, StoreUrl, Swapped, SystemClock,
};

use super::family::Family;
use super::request::EngineUrl;
use super::{couchdb, dynamodb, firestore};

/// The option of a URL that names a layout.
pub(super) const OPTION: &str = "layout";
const DOCUMENT: &str = "document";

/// Takes the layout out of a store's URL: whether it is `document`.
pub(super) fn take_from(url: &mut StoreUrl, family: Family) -> Result<bool> {
    let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
    if family.has_documents() {
        url.also_takes(&[OPTION]);
    }
    match url.take(OPTION) {
        None => Ok(false),
        Some(layout) if layout != DOCUMENT => {
            invalid(format!("layout must be {DOCUMENT}, not {layout:?}"))
        }
        Some(_) if !family.has_documents() => invalid(format!(
            "the {} engine has no layout={DOCUMENT}; couchdb, dynamodb and firestore have",
            url.engine()
        )),
        Some(_) => Ok(true),
    }
}

pub(super) async fn open(engine: EngineUrl, secret: &str) -> Result<DocumentLayout> {
    let EngineUrl { family, url, .. } = engine;
    let documents = match family {
        Family::CouchDb => couchdb::documents(url).await?,
        Family::DynamoDb => dynamodb::documents(url).await?,
        Family::Firestore => firestore::documents(url).await?,
        _ => {
            let message = format!("the {} engine has no documents", url.engine());
            return Err(Error::new(ErrorKind::Internal, message));
        }
    };
    let layout = DocumentLayout::open(Arc::new(Advised(documents)), SystemClock)?;
    Ok(layout.with_cursor_secret(secret))
}

/// Documents whose lists say how to create an index that is missing.
struct Advised(Arc<dyn Documents>);

impl Advised {
    async fn list_or_advise(&self, list: &DocumentList) -> Result<DocumentPage> {
        let error = match self.0.list(list).await {
            Ok(page) => return Ok(page),
            Err(error) => error,
        };
        let may_lack = !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Forbidden);
        if may_lack
            && let Ok(missing) = self.0.prepare(false).await
            && !missing.is_empty()
        {
            let engine = self.0.limits().engine;
            let missing = missing.join("; ");
            let message = format!(
                "the {engine} database is not prepared for lists: run keyward agent prepare (missing: {missing})"
            );
            return Err(Error::new(ErrorKind::Misplaced, message).advise(
                "Run keyward agent prepare --plan to see what would be created, and keyward agent prepare \
                 --apply to create it.",
            ));
        }
        Err(error)
    }
}

impl Documents for Advised {
    fn limits(&self) -> &DocumentLimits {
        self.0.limits()
    }

    fn get_many<'a>(&'a self, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Document>>>> {
        self.0.get_many(ids)
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        fields: &'a Json,
        replaced: Option<&'a Document>,
    ) -> BoxFuture<'a, Result<Swapped>> {
        self.0.put(id, fields, replaced)
    }

    fn delete<'a>(&'a self, removed: &'a Document) -> BoxFuture<'a, Result<Swapped>> {
        self.0.delete(removed)
    }

    fn list<'a>(&'a self, list: &'a DocumentList) -> BoxFuture<'a, Result<DocumentPage>> {
        Box::pin(self.list_or_advise(list))
    }

    fn compare(&self) -> bool {
        self.0.compare()
    }

    fn consistency(&self) -> Consistency {
        self.0.consistency()
    }

    fn list_lag(&self) -> Option<Duration> {
        self.0.list_lag()
    }

    fn verify(&self) -> BoxFuture<'_, Result<()>> {
        self.0.verify()
    }

    fn prepare(&self, create: bool) -> BoxFuture<'_, Result<Vec<String>>> {
        self.0.prepare(create)
    }
}
