//! Namespaces of a user.

use keyward::agents::{NamespaceStats, Namespaces, SPACE, Settings};

use super::{Behalf, Reached, user};
use crate::api::clearing::{Cleared, Confirmation};
use crate::identity::{Identity, Need, Target};
use crate::problem::Result;
use crate::services::Services;

/// A page of the namespaces that have entries, in order. A credential for some namespaces is told of
/// those alone.
pub async fn list(
    who: &Identity,
    services: &Services,
    behalf: &Behalf,
    cursor: Option<String>,
    limit: usize,
) -> Result<Namespaces> {
    let (store, agents) = services.agents()?;
    if !who.scopes().name_namespaces(Need::Read) {
        who.require(Need::Read, &Target::Space { space: SPACE, store })?;
    }
    let user = user(who, agents, behalf)?;
    let read = async move { Ok(user.list_namespaces(cursor, limit).await?) };
    let mut page = services.reads().run(who, agents.records().store(), read).await?;
    let reached =
        |namespace: &str| who.scopes().allow(Need::Read, &Target::Namespace { namespace, store });
    page.namespaces.retain(|namespace| reached(namespace));
    Ok(page)
}

/// How much a namespace holds. All of it is read.
pub async fn stats(who: &Identity, reached: &Reached<'_>) -> Result<NamespaceStats> {
    reached.require(who, Need::Read)?;
    reached.beside(who, |namespace| async move { namespace.stats().await }).await
}

/// What holds for the entries of a namespace.
pub async fn settings(who: &Identity, reached: &Reached<'_>) -> Result<Settings> {
    reached.require(who, Need::Read)?;
    Ok(reached.namespace.settings().await?)
}

/// Changes what holds for the entries of a namespace. Done again, it changes nothing.
pub async fn configure(who: &Identity, reached: &Reached<'_>, settings: Settings) -> Result<()> {
    reached.require(who, Need::Write)?;
    Ok(reached.namespace.configure(settings).await?)
}

/// Removes all entries of a namespace whose keys start with `prefix`, if it is confirmed how many these
/// are. Their history stays for as long as it is kept.
pub async fn clear(
    who: &Identity,
    reached: &Reached<'_>,
    prefix: &str,
    confirmation: Confirmation,
) -> Result<Cleared> {
    reached.admit(who, &format!("{prefix}*"))?;
    let below = prefix.to_owned();
    let count =
        reached.beside(who, |namespace| async move { namespace.count(&below).await }).await?;
    let removed = match confirmation.check(count, "entries")? {
        true => reached.namespace.clear_up_to(prefix, count).await?,
        false => 0,
    };
    Ok(Cleared { count, removed })
}
