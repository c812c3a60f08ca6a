//! Cloudflare KV.

use keyward_cloudflare_kv::{CloudflareKv, Options};
use keyward_engine::{Capabilities, Result, StoreUrl};

use super::request::opened;
use super::{Absent, Opened};

pub(super) fn capabilities(url: StoreUrl) -> Result<Capabilities> {
    Ok(Options::from_url(url)?.capabilities())
}

pub(super) async fn open(url: StoreUrl, absent: Absent) -> Result<Opened> {
    let options = Options::from_url(url)?;
    match absent {
        Absent::Create => opened(Some(CloudflareKv::open(options).await?)),
        Absent::Leave => opened(CloudflareKv::open_existing(options).await?),
    }
}
