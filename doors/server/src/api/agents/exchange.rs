//! Entries as documents, handed out and taken in.

use futures_util::{Stream, stream};
use keyward::Json;
use keyward::agents::{Document, Error, Imported, UserData};

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
    Ok(pages(user, namespace))
}

fn pages(
    user: UserData,
    namespace: Option<String>,
) -> impl Stream<Item = Result<Vec<Json>>> + Send + use<> {
    stream::unfold(Some((user, namespace, None)), |state| async move {
        let (user, namespace, after) = state?;
        Some(match user.export(namespace.as_deref(), after, PAGE).await {
            Ok(page) => {
                let next = page.next.map(|next| (user, namespace, Some(next)));
                (Ok(page.documents), next)
            }
            Err(error) => (Err(error.into()), None),
        })
    })
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
