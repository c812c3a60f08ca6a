//! Pages of Confluence Cloud.

mod client;
mod download;
mod settings;
mod shapes;
mod tls;

use std::collections::{BTreeMap, HashSet, VecDeque};

use bytes::Bytes;
use keyward_engine::BoxFuture;
use tokio::sync::OnceCell;

use self::client::{Answer, Client};
use self::shapes::{AncestorShape, AttachmentShape, DescendantShape, PageShape, SpaceShape};
use super::{Source, failed, refused};
use crate::{Attachment, BodyFormat, Error, Page, PageId, PageSummary, Result, SourceId};

pub use settings::{ConfluenceOptions, ConfluenceSettings};

/// Items that are asked for at once: as many as Confluence gives.
const TOGETHER: &str = "250";
/// Levels that Confluence shows below a page at once.
const LEVELS: u32 = 5;

/// Pages of Confluence Cloud, by version 2 of its REST API.
///
/// A page's text is what Confluence stores, which is XHTML, and an attachment's `created` is when its
/// version was made. Attachments are downloaded by the REST API's address for that, which takes API tokens,
/// and not by their `downloadLink`, which does not.
///
/// Confluence answers 404 for a page that is gone, and for one that these credentials may not see. So a
/// page is certainly not there if Confluence shows it, as trashed or deleted. A 404 is an error, unless the
/// settings say that these credentials see every page (`missing_is_gone`); and even then it counts only if
/// Confluence shows them the space, or the root page, at the same time. A page in another space than the
/// settings', or not below their root page, is an error: it was moved, and may be moved back.
#[derive(Debug)]
pub struct Confluence {
    client: Client,
    settings: ConfluenceSettings,
    options: ConfluenceOptions,
    /// The id of the settings' space, once it is known.
    space: OnceCell<String>,
}

impl Confluence {
    /// Sets up the connection; nothing is asked yet.
    pub fn new(settings: ConfluenceSettings, options: ConfluenceOptions) -> Result<Self> {
        let client = Client::new(&settings, options)?;
        Ok(Self { client, settings, options, space: OnceCell::new() })
    }

    async fn pages(&self) -> Result<Vec<PageSummary>> {
        let mut pages = BTreeMap::new();
        if let Some(root) = &self.settings.root_page {
            self.below(root, &mut pages).await?;
        } else {
            let space = self.space().await?;
            let path = match space {
                Some(space) => vec!["api", "v2", "spaces", space, "pages"],
                None => vec!["api", "v2", "pages"],
            };
            let query = [("status", "current"), ("limit", TOGETHER)];
            let most = self.options.limits.pages_max;
            let found = self.client.all::<PageShape>(&path, &query, most).await?;
            for page in found.expected("the space")? {
                pages.insert(page_id(&page.id)?, page.title);
            }
        }
        Ok(pages.into_iter().map(|(id, title)| PageSummary { id, title }).collect())
    }

    /// The root page, and all pages below it.
    async fn below(&self, root: &str, pages: &mut BTreeMap<PageId, String>) -> Result<()> {
        let page = self.client.json::<PageShape>(&["api", "v2", "pages", root], &[]).await?;
        let page = page.expected("the root page")?;
        self.check_space(&page).await?;
        pages.insert(page_id(root)?, page.title);
        let mut deeper = VecDeque::from([("pages", root.to_owned())]);
        let mut seen = HashSet::from([root.to_owned()]);
        while let Some((kind, id)) = deeper.pop_front() {
            let path = ["api", "v2", kind, &id, "descendants"];
            let levels = LEVELS.to_string();
            let query = [("depth", &*levels), ("limit", TOGETHER)];
            let most = self.options.limits.pages_max;
            let found = self.client.all::<DescendantShape>(&path, &query, most).await?;
            for item in found.expected("a page below the root page")? {
                let kind = match &*item.kind {
                    "page" => "pages",
                    "folder" => "folders",
                    _ => continue,
                };
                let id = page_id(&item.id)?;
                if kind == "pages" && item.is_current() {
                    pages.insert(id, item.title);
                }
                // Each once, whatever Confluence says is below what.
                if item.depth >= LEVELS && seen.insert(item.id.clone()) {
                    deeper.push_back((kind, item.id));
                }
                if pages.len().max(seen.len()) > most {
                    return Err(refused(format!("there are more than {most} pages")));
                }
            }
        }
        Ok(())
    }

    async fn find(&self, id: &PageId) -> Result<Option<Page>> {
        let Some((page, attached)) = self.look(id, true).await? else { return Ok(None) };
        let body = page.body.and_then(|body| body.storage);
        let body = body.ok_or_else(|| failed(format!("Confluence gave the page {id} no text")))?;
        if body.value.len() as u64 > self.options.limits.body_bytes_max {
            let most = self.options.limits.body_bytes_max;
            return Err(refused(format!("the text of the page {id} has more than {most} bytes")));
        }
        let attachments = attached.into_iter().map(AttachmentShape::attachment);
        let mut attachments = attachments.collect::<Result<Vec<Attachment>>>()?;
        attachments.sort_by(|one, other| one.source.cmp(&other.source));
        let updated = attachments.iter().map(|attachment| attachment.created).max();
        Ok(Some(Page {
            id: id.clone(),
            title: page.title,
            body: body.value,
            body_format: BodyFormat::Html,
            updated: updated.unwrap_or_default().max(page.version.created_at),
            attachments,
        }))
    }

    async fn download(&self, page: &PageId, source: &SourceId) -> Result<Option<Bytes>> {
        let Some((_, attached)) = self.look(page, false).await? else { return Ok(None) };
        match attached.iter().find(|attached| attached.id == source.as_str()) {
            Some(attached) => self.client.download(page.as_str(), attached).await.map(Some),
            None => Ok(None),
        }
    }

    /// A page and what is attached to it. `None` if it is certainly not there.
    async fn look(
        &self,
        id: &PageId,
        whole: bool,
    ) -> Result<Option<(PageShape, Vec<AttachmentShape>)>> {
        if !id.as_str().bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Error::Invalid(format!("{id} is no page's id in Confluence: a number is")));
        }
        let path = ["api", "v2", "pages", id.as_str()];
        let states = ["current", "archived", "trashed", "deleted"].map(|state| ("status", state));
        let mut query = states.to_vec();
        query.extend(whole.then_some(("body-format", "storage")));
        let page = match self.client.json::<PageShape>(&path, &query).await? {
            Answer::Found(page) => page,
            Answer::Missing => return self.missing(id).await.map(|()| None),
        };
        if page.id != id.as_str() {
            return Err(failed(format!("Confluence gave another page than {id}")));
        }
        match &*page.status {
            "current" | "archived" => {}
            "trashed" | "deleted" => return Ok(None),
            other => return Err(refused(format!("the page {id} is {other} in Confluence"))),
        }
        self.check_space(&page).await?;
        self.check_root(id).await?;
        let path = ["api", "v2", "pages", id.as_str(), "attachments"];
        let most = self.options.limits.attachments_max;
        let query = [("limit", TOGETHER)];
        let attached = self.client.all::<AttachmentShape>(&path, &query, most).await?;
        let mut attached = attached.expected("the list of its attachments")?;
        attached.retain(AttachmentShape::is_there);
        Ok(Some((page, attached)))
    }

    /// What a page means that Confluence does not show: that it is gone, or an error.
    async fn missing(&self, id: &PageId) -> Result<()> {
        if !self.settings.missing_is_gone {
            return Err(refused(format!(
                "Confluence shows no page {id}: it is not there, or these credentials may not see it"
            )));
        }
        // Credentials that see nothing at all any more say nothing about one page.
        if let Some(root) = &self.settings.root_page {
            let page = self.client.json::<PageShape>(&["api", "v2", "pages", root], &[]).await?;
            page.expected("the root page")?;
        }
        let spaces = self.spaces().await?;
        if spaces.is_empty() {
            return Err(refused("Confluence shows these credentials no space"));
        }
        Ok(())
    }

    async fn check_space(&self, page: &PageShape) -> Result<()> {
        match (self.space().await?, &self.settings.space) {
            (Some(id), Some(key)) if page.space_id.as_deref() != Some(id) => {
                Err(refused(format!("the page {} is not in the space {key}", page.id)))
            }
            _ => Ok(()),
        }
    }

    async fn check_root(&self, id: &PageId) -> Result<()> {
        let Some(root) = self.settings.root_page.as_deref().filter(|root| *root != id.as_str())
        else {
            return Ok(());
        };
        let path = ["api", "v2", "pages", id.as_str(), "ancestors"];
        let most = self.options.limits.pages_max;
        let above = self.client.all::<AncestorShape>(&path, &[("limit", TOGETHER)], most).await?;
        if above.expected("what is above the page")?.iter().any(|page| page.id == root) {
            return Ok(());
        }
        Err(refused(format!("the page {id} is not below the root page {root}")))
    }

    /// The id of the settings' space.
    async fn space(&self) -> Result<Option<&str>> {
        let Some(key) = &self.settings.space else { return Ok(None) };
        let found = self.space.get_or_try_init(async || {
            let space = self.spaces().await?.into_iter().find(|space| space.key == *key);
            space.map(|space| space.id).ok_or_else(|| {
                refused(format!("Confluence shows these credentials no space {key}"))
            })
        });
        found.await.map(|id| Some(id.as_str()))
    }

    /// The settings' space, or one that these credentials see.
    async fn spaces(&self) -> Result<Vec<SpaceShape>> {
        let mut query = vec![("limit", "1")];
        query.extend(self.settings.space.as_deref().map(|key| ("keys", key)));
        let path = ["api", "v2", "spaces"];
        let spaces = self.client.json::<shapes::Listed<SpaceShape>>(&path, &query).await?;
        Ok(spaces.expected("the list of spaces")?.results)
    }
}

fn page_id(id: &str) -> Result<PageId> {
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(failed("Confluence gave a page an id that is no number"));
    }
    PageId::new(id)
}

impl Source for Confluence {
    fn identity(&self) -> String {
        let ConfluenceSettings { base_url, space, root_page, .. } = &self.settings;
        let named = |what: &str, name: &Option<String>| {
            name.as_ref().map(|name| format!(", {what} {name}")).unwrap_or_default()
        };
        let base_url = base_url.trim_end_matches('/');
        format!("{base_url}{}{}", named("space", space), named("page", root_page))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<PageSummary>>> {
        Box::pin(self.pages())
    }

    fn page<'a>(&'a self, page: &'a PageId) -> BoxFuture<'a, Result<Option<Page>>> {
        Box::pin(self.find(page))
    }

    fn read<'a>(
        &'a self,
        page: &'a PageId,
        source: &'a SourceId,
    ) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(self.download(page, source))
    }
}
