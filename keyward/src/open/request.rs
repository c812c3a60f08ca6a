//! What a store's URL asks for.

use std::sync::Arc;

use keyward_agents::DocumentLayout;
use keyward_coordinated::Coordinated;
use keyward_engine::{
    BoxFuture, Capabilities, Engine, Error, ErrorKind, Result, StoreUrl, SystemClock,
};
use keyward_memory::Memory;
use keyward_postgres::Postgres;
use keyward_remote::Remote;

use super::coordinator::{self, Coordinator};
use super::family::Family;
use super::{Absent, Opened, document_layout, embedded};
use super::{cloudflare_kv, couchdb, dynamodb, firestore, forge_kvs};

/// What a store's URL asks for: an engine with its own options, and what is done on top of it.
pub(super) struct Request {
    engine: EngineUrl,
    /// For `layout=document`: what cursors are made with.
    layout_secret: Option<String>,
    coordinator: Option<Coordinator>,
}

/// An engine, and the URL as that engine reads it.
#[derive(Clone)]
pub(super) struct EngineUrl {
    pub family: Family,
    pub url: StoreUrl,
    /// Whether a coordinator keeps the versions of its entries.
    pub is_coordinated: bool,
}

impl Request {
    pub fn parse(text: &str) -> Result<Self> {
        let mut url: StoreUrl = text.parse()?;
        let family = Family::of(&url)?;
        let has_layout = document_layout::take_from(&mut url, family)?;
        let coordinator = coordinator::take_from(&mut url, family)?;
        let layout_secret = has_layout.then(|| text.to_owned());
        let engine = EngineUrl { family, url, is_coordinated: coordinator.is_some() };
        Ok(Self { engine, layout_secret, coordinator })
    }

    pub fn has_document_layout(&self) -> bool {
        self.layout_secret.is_some()
    }

    /// Nothing, if only the opened store can tell.
    pub fn capabilities(self) -> Result<Option<Capabilities>> {
        let has_layout = self.has_document_layout();
        let capabilities = self.engine.capabilities()?.filter(|_| !has_layout);
        let Some(coordinator) = self.coordinator else { return Ok(capabilities) };
        match (capabilities, coordinator.engine.capabilities()?) {
            (Some(values), Some(it)) => Coordinated::capabilities_of(&values, &it).map(Some),
            _ => Ok(None),
        }
    }

    /// Boxed: what the drivers of databases await is deep, and compiled once here.
    pub fn open(self, absent: Absent) -> BoxFuture<'static, Result<Opened>> {
        Box::pin(self.open_here(absent))
    }

    async fn open_here(self, absent: Absent) -> Result<Opened> {
        if self.has_document_layout() {
            let layout: Arc<dyn Engine> = Arc::new(self.document_layout().await?);
            return Ok(Some(layout));
        }
        let Some(Coordinator { engine, options }) = self.coordinator else {
            return self.engine.open(absent).await;
        };
        // What cannot be a coordinator is told before anything is opened or made.
        let known = (self.engine.clone().capabilities()?, engine.clone().capabilities()?);
        if let (Some(values), Some(it)) = &known {
            Coordinated::capabilities_of(values, it)?;
        }
        let Some(opened) = self.engine.open(absent).await? else { return Ok(None) };
        let shown = engine.url.to_string();
        let Some(coordinator) = engine.open(absent).await? else {
            return Err(coordinator::missing(&shown));
        };
        let both = Coordinated::open(opened, coordinator, options, SystemClock).await?;
        Ok(Some(Arc::new(both)))
    }

    /// An error if the URL does not ask for it.
    pub fn document_layout(self) -> BoxFuture<'static, Result<DocumentLayout>> {
        Box::pin(self.document_layout_here())
    }

    async fn document_layout_here(self) -> Result<DocumentLayout> {
        let Some(secret) = self.layout_secret else {
            let message = format!("{} has no layout=document", self.engine.url);
            return Err(Error::new(ErrorKind::Invalid, message).advise(
                "Only stores with layout=document need preparing; others create what they need themselves.",
            ));
        };
        document_layout::open(self.engine, &secret).await
    }
}

impl EngineUrl {
    fn capabilities(self) -> Result<Option<Capabilities>> {
        let Self { family, url, is_coordinated } = self;
        Ok(Some(match family {
            Family::Memory => keyward_memory::Options::from_url(url)?.capabilities(),
            Family::Embedded => keyward_embedded::Options::from_url(url)?.1.capabilities(),
            Family::Postgres => {
                keyward_postgres::Options::from_url(url)?;
                keyward_postgres::Options::capabilities()
            }
            Family::Remote => {
                keyward_remote::Options::from_url(url)?;
                return Ok(None);
            }
            Family::CouchDb => couchdb::capabilities(url)?,
            Family::DynamoDb => dynamodb::capabilities(url)?,
            Family::Firestore => firestore::capabilities(url)?,
            Family::CloudflareKv => cloudflare_kv::capabilities(url)?,
            Family::ForgeKvs => forge_kvs::capabilities(url, is_coordinated)?,
        }))
    }

    fn open(self, absent: Absent) -> BoxFuture<'static, Result<Opened>> {
        Box::pin(self.open_here(absent))
    }

    async fn open_here(self, absent: Absent) -> Result<Opened> {
        let Self { family, url, is_coordinated } = self;
        match family {
            Family::Memory => {
                let options = keyward_memory::Options::from_url(url)?;
                opened(Some(Memory::with(options, SystemClock)))
            }
            Family::Embedded => embedded::open(url, absent).await,
            Family::Postgres => {
                let (server, options) = keyward_postgres::Options::from_url(url)?;
                match absent {
                    Absent::Create => opened(Some(Postgres::open(&server, options).await?)),
                    Absent::Leave => opened(Postgres::open_existing(&server, options).await?),
                }
            }
            // A server that does not have it says so itself.
            Family::Remote => {
                let (address, options) = keyward_remote::Options::from_url(url)?;
                opened(Some(Remote::open(&address, &options).await?))
            }
            Family::CouchDb => couchdb::open(url, absent).await,
            Family::DynamoDb => dynamodb::open(url, absent).await,
            Family::Firestore => firestore::open(url, absent).await,
            Family::CloudflareKv => cloudflare_kv::open(url, absent).await,
            Family::ForgeKvs => forge_kvs::open(url, absent, is_coordinated).await,
        }
    }
}

/// Why the coordinator that a URL names cannot be one.
pub(super) fn check_coordinator(text: &str) -> Result<()> {
    let (Ok(mut url), true) = (text.parse::<StoreUrl>(), coordinator::is_named(text)) else {
        return Ok(());
    };
    let Ok(family) = Family::of(&url) else { return Ok(()) };
    let Some(coordinator) = coordinator::take_from(&mut url, family)? else { return Ok(()) };
    let Some(it) = coordinator.engine.capabilities()? else { return Ok(()) };
    match (EngineUrl { family, url, is_coordinated: true }).capabilities() {
        Ok(Some(values)) => Coordinated::capabilities_of(&values, &it).map(drop),
        Ok(None) | Err(_) => Ok(()),
    }
}

pub(super) fn opened(engine: Option<impl Engine>) -> Result<Opened> {
    Ok(engine.map(|engine| Arc::new(engine) as Arc<dyn Engine>))
}
