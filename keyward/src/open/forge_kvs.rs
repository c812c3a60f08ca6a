//! Forge KVS.

use keyward_engine::{Capabilities, Result, StoreUrl};
use keyward_forge_kvs::{ForgeKvs, Options, Sidecars};

use super::coordinator::has;
use super::request::opened;
use super::{Absent, Opened};

pub(super) fn capabilities(url: StoreUrl, is_coordinated: bool) -> Result<Capabilities> {
    Ok(options(url, is_coordinated)?.capabilities())
}

pub(super) async fn open(url: StoreUrl, absent: Absent, is_coordinated: bool) -> Result<Opened> {
    let options = options(url, is_coordinated)?;
    match absent {
        Absent::Create => opened(Some(ForgeKvs::open(options).await?)),
        Absent::Leave => opened(ForgeKvs::open_existing(options).await?),
    }
}

fn options(url: StoreUrl, is_coordinated: bool) -> Result<Options> {
    let is_said = has(&url, "sidecars");
    let mut options = Options::from_url(url)?;
    if is_coordinated && !is_said {
        options.sidecars = Sidecars::Needed;
    }
    Ok(options)
}
