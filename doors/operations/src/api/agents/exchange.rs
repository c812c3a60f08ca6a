//! Entries as documents, handed out and taken in.

use std::collections::HashMap;

use futures_util::{Stream, stream};
use keyward::Json;
use keyward::agents::{Agents, DocumentReader, Error, Exported, Imported, Incoming, UserData};

use super::{Behalf, place, reach, reach_all_users, reach_user, user};
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::services::Services;

/// How many documents are read together.
const PAGE: usize = 16;

/// A user's entries as documents, of all namespaces or of one, some at a time. They do not count as
/// accessed.
pub fn export(
    who: &Identity,
    services: &Services,
    behalf: &Behalf,
    namespace: Option<String>,
) -> Result<impl Stream<Item = Result<Vec<Json>>> + Send + use<>> {
    let user = match &namespace {
        Some(name) => reach(who, services, behalf, name)?.user,
        None => reach_user(who, services, behalf)?.user,
    };
    let export = Export { who: who.clone(), services: services.clone(), user, namespace };
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
    services: Services,
    user: UserData,
    namespace: Option<String>,
}

impl Export {
    /// One page. The first one is refused when the server has too much to do; what was begun goes on.
    async fn page(&self, after: Option<String>) -> Result<Exported> {
        let (_, agents) = self.services.agents()?;
        let store = agents.records().store();
        let first = after.is_none();
        let (user, namespace) = (self.user.clone(), self.namespace.clone());
        let read = async move { Ok(user.export(namespace.as_deref(), after, PAGE).await?) };
        match first {
            true => self.services.reads().run(&self.who, store, read).await,
            false => self.services.reads().resume(&self.who, store, read).await,
        }
    }
}

/// An import on its way: for one user, or for all of them.
pub struct Import<'a> {
    who: &'a Identity,
    services: &'a Services,
    behalf: Behalf,
    /// The user, unless it is for all of them.
    only: Option<UserData>,
    imported: Imported,
}

impl<'a> Import<'a> {
    /// Begins an import. Only credentials that are bound to no user may import for all of them.
    pub fn begin(
        who: &'a Identity,
        services: &'a Services,
        behalf: Behalf,
        all_users: bool,
    ) -> Result<Self> {
        let only = match all_users {
            true => {
                reach_all_users(who, services, &behalf)?;
                None
            }
            false => {
                let reached = reach_user(who, services, &behalf)?;
                reached.require(who, Need::Write)?;
                Some(reached.user)
            }
        };
        Ok(Self { who, services, behalf, only, imported: Imported::default() })
    }

    /// A reader of the documents, each of at most so many bytes.
    pub fn reader(&self, document_bytes_max: usize) -> DocumentReader {
        let reader = DocumentReader::new(document_bytes_max);
        match &self.only {
            Some(user) => reader.only_of(user.user_id()),
            None => reader,
        }
    }

    /// Imports some documents: each entry then has what its document says. If one cannot be imported, those
    /// before it are.
    pub async fn take(&mut self, mut documents: Vec<Incoming>) -> Result<()> {
        let (_, agents) = self.services.agents()?;
        let mut users = HashMap::new();
        let mut bad = None;
        for (n, incoming) in documents.iter().enumerate() {
            if let Err(problem) = self.admit(agents, incoming, &mut users) {
                let (number, line) = (incoming.number, incoming.line);
                let reason = problem.detail().to_owned();
                bad = Some((n, Error::BadDocument { number, line, reason }));
                break;
            }
        }
        if let Some((before, _)) = &bad {
            documents.truncate(*before);
        }
        let done = match &self.only {
            Some(user) => user.import_read(documents).await,
            None => {
                let reach = |id: &str| {
                    let unknown = || Error::Invalid(format!("user {id:?} is not known"));
                    users.get(id).cloned().ok_or_else(unknown)
                };
                agents.import_all_users(documents, reach).await
            }
        };
        self.imported.add(done.map_err(|error| self.failed(error))?);
        match bad {
            Some((_, error)) => Err(self.failed(error)),
            None => Ok(()),
        }
    }

    /// Remembers a document for the audit log, and whose it is if that is not known yet.
    fn admit(
        &self,
        agents: &Agents,
        incoming: &Incoming,
        users: &mut HashMap<String, UserData>,
    ) -> Result<()> {
        let id = &incoming.document.id;
        if self.only.is_none() && !users.contains_key(&id.user) {
            let behalf = Behalf { user: Some(id.user.clone()), ..self.behalf.clone() };
            users.insert(id.user.clone(), user(self.who, agents, &behalf)?);
        }
        self.who.touches(&place(agents, &id.user, &id.namespace, &id.key)?);
        Ok(())
    }

    /// The problem that an error is, with the number of entries that were written before it.
    pub fn failed(&self, error: Error) -> Problem {
        self.imported.before(error).into()
    }

    /// What was imported so far.
    pub fn imported(&self) -> Imported {
        self.imported
    }
}
