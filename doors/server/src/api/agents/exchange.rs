//! Entries as documents, handed out and taken in.

use futures_util::{Stream, stream};
use keyward::Json;
use keyward::agents::{Document, Error, Exported, Imported, UserData};

use super::{Behalf, ReachedUser, place, reach, reach_user};
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::problem::Result;

/// How many documents are read together.
const PAGE: usize = 100;

/// A user's entries as documents, of all namespaces or of one, some at a time. They do not count as
/// accessed.
pub(crate) fn export(
    who: &Identity,
    app: &App,
    behalf: &Behalf,
    namespace: Option<String>,
) -> Result<impl Stream<Item = Result<Vec<Json>>> + Send + use<>> {
    let user = match &namespace {
        Some(name) => reach(who, app, behalf, name)?.user,
        None => reach_user(who, app, behalf)?.user,
    };
    let export = Export { who: who.clone(), app: app.clone(), user, namespace };
    Ok(stream::unfold(Some((export, None)), |state| async move {
        let (export, after) = state?;
        Some(match export.page(after).await {
            Ok(page) => (Ok(page.documents), page.next.map(|next| (export, Some(next)))),
            Err(problem) => (Err(problem), None),
        })
    }))
}

/// An export on its way.
struct Export {
    who: Identity,
    app: App,
    user: UserData,
    namespace: Option<String>,
}

impl Export {
    /// One page. The first one is refused when the server has too much to do; what was begun goes on.
    async fn page(&self, after: Option<String>) -> Result<Exported> {
        let (_, agents) = self.app.agents()?;
        let store = agents.records().store();
        let first = after.is_none();
        let (user, namespace) = (self.user.clone(), self.namespace.clone());
        let read = async move { Ok(user.export(namespace.as_deref(), after, PAGE).await?) };
        match first {
            true => self.app.reads().run(&self.who, store, read).await,
            false => self.app.reads().resume(&self.who, store, read).await,
        }
    }
}

/// Takes documents in: each entry has then what its document says. Done again, it changes nothing more.
/// `taken` is how many were taken before, by which errors number documents.
pub(crate) async fn import(
    who: &Identity,
    reached: &ReachedUser<'_>,
    documents: Vec<Document>,
    taken: usize,
) -> Result<Imported> {
    for Document { id, .. } in &documents {
        who.touches(&place(reached.agents, reached.user.user_id(), &id.namespace, &id.key)?);
    }
    reached.require(who, Need::Write)?;
    Ok(reached.user.import(documents).await.map_err(|error| match error {
        Error::BadDocument { number, reason } => {
            Error::BadDocument { number: taken + number, reason }
        }
        Error::Partly { done, source } => Error::Partly { done: taken + done, source },
        error if taken > 0 => Error::Partly { done: taken, source: Box::new(error) },
        error => error,
    })?)
}
