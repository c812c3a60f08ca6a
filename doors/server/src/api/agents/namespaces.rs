//! Namespaces of a user.

use keyward::agents::{NamespaceStats, Namespaces, SPACE, Settings};

use super::{Behalf, Reached, user};
use crate::app::App;
use crate::auth::{Identity, Need, Target};
use crate::problem::{Problem, Result};

/// A page of the namespaces that have entries, in order. A credential for some namespaces is told of
/// those alone.
pub(crate) async fn list(
    who: &Identity,
    app: &App,
    behalf: &Behalf,
    cursor: Option<String>,
    limit: usize,
) -> Result<Namespaces> {
    let (store, agents) = app.agents()?;
    if !who.scopes().name_namespaces(Need::Read) {
        who.require(Need::Read, &Target::Space { space: SPACE, store })?;
    }
    let user = user(who, app, agents, behalf)?;
    let read = async move { Ok(user.list_namespaces(cursor, limit).await?) };
    let mut page = app.reads().run(who, agents.records().store(), read).await?;
    let reached =
        |namespace: &str| who.scopes().allow(Need::Read, &Target::Namespace { namespace, store });
    page.namespaces.retain(|namespace| reached(namespace));
    Ok(page)
}

/// How much a namespace holds. All of it is read.
pub(crate) async fn stats(who: &Identity, reached: &Reached<'_>) -> Result<NamespaceStats> {
    reached.require(who, Need::Read)?;
    reached.beside(who, |namespace| async move { namespace.stats().await }).await
}

/// What holds for the entries of a namespace.
pub(crate) async fn settings(who: &Identity, reached: &Reached<'_>) -> Result<Settings> {
    reached.require(who, Need::Read)?;
    Ok(reached.namespace.settings().await?)
}

/// Changes what holds for the entries of a namespace. Done again, it changes nothing.
pub(crate) async fn configure(
    who: &Identity,
    reached: &Reached<'_>,
    settings: Settings,
) -> Result<()> {
    reached.require(who, Need::Write)?;
    Ok(reached.namespace.configure(settings).await?)
}

/// Whether it is known how much is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// Nothing is removed; how much it would be is told.
    DryRun,
    /// So many entries.
    Count(usize),
    /// Nobody said how many.
    Missing,
}

/// What was removed of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cleared {
    /// How many entries there were.
    pub count: usize,
    /// How many are gone.
    pub removed: usize,
}

/// Removes all entries of a namespace whose keys start with `prefix`, if it is confirmed how many these
/// are. Their history stays for as long as it is kept.
pub(crate) async fn clear(
    who: &Identity,
    reached: &Reached<'_>,
    prefix: &str,
    confirmation: Confirmation,
) -> Result<Cleared> {
    reached.admit(who, &format!("{prefix}*"))?;
    let below = prefix.to_owned();
    let count =
        reached.beside(who, |namespace| async move { namespace.count(&below).await }).await?;
    let unconfirmed = |detail: String| {
        Problem::new("unconfirmed", detail)
            .hint(format!(
                "Send it again with confirm={count}, if that is meant; nothing was done."
            ))
            .with("count", count)
    };
    match confirmation {
        Confirmation::DryRun => Ok(Cleared { count, removed: 0 }),
        Confirmation::Missing => Err(unconfirmed(format!("{count} entries would be removed"))),
        Confirmation::Count(said) if said != count => {
            Err(unconfirmed(format!("{count} entries would be removed, not {said}")))
        }
        Confirmation::Count(_) => {
            Ok(Cleared { count, removed: reached.namespace.clear(prefix).await? })
        }
    }
}
