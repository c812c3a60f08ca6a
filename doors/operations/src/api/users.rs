//! Everything that is one user's, in all stores: handed out, or removed.

use std::sync::Arc;

use futures_util::{Stream, StreamExt, stream};
use keyward::records::{Belonging, Belongings, Position, Removed};
use keyward::{Code, Key, Tier};

use crate::identity::{ApiKey, Identity, Need, Target};
use crate::problem::{Problem, Result};
use crate::services::Services;
use crate::stores::Served;

/// The longest name of a user.
const USER_BYTES_MAX: usize = 256;
/// How many roots of locks are looked at together.
const ROOTS_PER_PAGE: usize = 1_000;

/// One thing of a user's, and the store that it is in.
#[derive(Debug)]
pub enum Thing {
    Key(ApiKey),
    Stored { store: String, belonging: Belonging },
}

/// What was removed of a user's.
#[derive(Debug, Default)]
pub struct Gone {
    pub keys: usize,
    pub stored: Removed,
}

/// Everything of a user's, some at a time.
pub async fn export(
    who: &Identity,
    services: &Services,
    user: &str,
) -> Result<impl Stream<Item = Result<Vec<Thing>>> + Send + use<>> {
    who.require(Need::Admin, &Target::Server)?;
    let stores = belongings(services, user).await?;
    let (keys, user) = (services.keys().clone(), user.to_owned());
    let keys = stream::once(async move {
        Ok(keys.of_user(&user).await?.into_iter().map(Thing::Key).collect())
    });
    let (who, services) = (who.clone(), services.clone());
    let stored = stream::iter(stores).flat_map(move |(store, belongings)| {
        let (who, services, belongings) = (who.clone(), services.clone(), Arc::new(belongings));
        pages(Export { who, services, store, belongings })
    });
    Ok(keys.chain(stored))
}

/// The export of what is a user's in one store.
struct Export {
    who: Identity,
    services: Services,
    store: String,
    belongings: Arc<Belongings>,
}

impl Export {
    async fn page(&self, from: Position) -> Result<(Vec<Thing>, Option<Position>)> {
        let belongings = self.belongings.clone();
        let read = async move { Ok(belongings.page(from).await?) };
        let store = self.services.store(&self.store)?.store();
        let (things, next) = self.services.reads().resume(&self.who, store, read).await?;
        let stored = |belonging| Thing::Stored { store: self.store.clone(), belonging };
        Ok((things.into_iter().map(stored).collect(), next))
    }
}

fn pages(export: Export) -> impl Stream<Item = Result<Vec<Thing>>> + Send + use<> {
    stream::unfold((export, Some(Position::default())), |(export, from)| async move {
        let (page, next) = match export.page(from?).await {
            Ok((things, next)) => (Ok(things), next),
            Err(problem) => (Err(problem), None),
        };
        Some((page, (export, next)))
    })
}

/// Removes everything of a user's: first their API keys, so that nothing new is made with them. What
/// an error leaves behind, the next call removes. The audit log stays as it is.
pub async fn remove(who: &Identity, services: &Services, user: &str) -> Result<Gone> {
    who.require(Need::Admin, &Target::Server)?;
    let stores = belongings(services, user).await?;
    let (keys, user) = (services.keys().clone(), user.to_owned());
    let agents = services.agents().ok().map(|(_, agents)| agents.clone());
    // It goes on when nobody waits for it any more.
    let work = tokio::spawn(async move {
        // What is gathered about the user would be written after all else is gone.
        if let Some(agents) = agents {
            agents.flush().await?;
        }
        let mut gone = Gone { keys: keys.remove_user(&user).await?, ..Gone::default() };
        for (_, belongings) in stores {
            let Removed { records, versions, entries } = belongings.remove().await?;
            gone.stored.records += records;
            gone.stored.versions += versions;
            gone.stored.entries += entries;
        }
        Ok(gone)
    });
    work.await.unwrap_or_else(|_| {
        Err(Problem::new(Code::Internal, "the work was cut off by a fault of the server")
            .hint("Send it again: it goes on where it ended."))
    })
}

async fn belongings(services: &Services, user: &str) -> Result<Vec<(String, Belongings)>> {
    if user.is_empty() || user.len() > USER_BYTES_MAX || user.contains(char::is_control) {
        return Err(Problem::invalid(format!(
            "a user has 1 to {USER_BYTES_MAX} bytes and no control characters"
        )));
    }
    let mut theirs = Vec::new();
    for served in services.stores().iter() {
        let belongings = match services.agents() {
            Ok((store, agents)) if *store == served.name => agents.belongings(user)?,
            _ => served.records.belongings(user)?,
        };
        let belongings = belongings
            .sparing(served.rules.lock_roots().iter().cloned())
            .sparing_keys(roots_in_use(served, user).await?);
        theirs.push((served.name.clone(), belongings));
    }
    Ok(theirs)
}

/// The roots below `user:{user}` on which somebody holds or wants a lock: their catalogs say who.
async fn roots_in_use(served: &Served, user: &str) -> Result<Vec<Key>> {
    let (mut found, mut after) = (Vec::new(), None);
    // Where there are none, or they cannot be found, none is spared.
    let Ok(locks) = served.locks() else { return Ok(found) };
    if served.store().capabilities().tier() != Tier::Atomic {
        return Ok(found);
    }
    loop {
        let page = locks.roots(after, ROOTS_PER_PAGE).await?;
        let own = |root: &Key| {
            let mut segments = root.segments();
            segments.next().as_deref() == Some("user") && segments.next().as_deref() == Some(user)
        };
        found.extend(page.roots.into_iter().filter(own));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(found),
        }
    }
}
