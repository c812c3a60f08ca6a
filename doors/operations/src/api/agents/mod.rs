//! What agents keep for users.
//!
//! [`reach`] and [`reach_user`] find out for whom something is asked: the user comes from the credential,
//! and only one that is nobody in particular may name one. What else there is takes what they give.

mod change;
pub mod entries;
pub mod exchange;
pub mod history;
pub mod memories;
pub mod namespaces;
pub mod runs;
pub mod search;

use keyward::agents::{self, Agents, Namespace, SPACE, UserData};
use keyward::records::Caller;
use keyward::{Bindings, Code, Key, KeyRange, Pattern, Store};

use super::entries::Precondition;
use crate::idempotency::Mark;
use crate::identity::{Identity, LOCAL, Need, Target};
use crate::problem::{Problem, Result};
use crate::services::Services;

/// The longest name of a user, an agent or a run.
pub const NAME_BYTES_MAX: usize = 256;

/// For whom, and in whose name, something is asked, as the request says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Behalf {
    /// The user, where the credential is nobody's in particular.
    pub user: Option<String>,
    /// The agent, where the credential names none.
    pub agent: Option<String>,
    /// The run of the agent.
    pub run: Option<String>,
}

/// What a change depends on, and by what it is known again.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    pub expected: Precondition,
    pub mark: Option<Mark>,
}

/// A namespace of a user's that a caller may read. Only [`reach`] makes one.
#[derive(Debug)]
pub struct Reached<'a> {
    services: &'a Services,
    store: &'a str,
    agents: &'a Agents,
    user: UserData,
    namespace: Namespace,
}

/// A user's namespaces, all of which a caller may read. Only [`reach_user`] makes one.
#[derive(Debug)]
pub struct ReachedUser<'a> {
    services: &'a Services,
    store: &'a str,
    agents: &'a Agents,
    user: UserData,
}

/// A namespace, which need not have entries yet.
pub fn reach<'a>(
    who: &Identity,
    services: &'a Services,
    behalf: &Behalf,
    namespace: &str,
) -> Result<Reached<'a>> {
    let (store, agents) = services.agents()?;
    who.require(Need::Read, &Target::Namespace { namespace, store })?;
    let user = user(who, agents, behalf)?;
    let namespace = user.use_namespace(namespace)?;
    Ok(Reached { services, store, agents, user, namespace })
}

/// Everything of a user's.
pub fn reach_user<'a>(
    who: &Identity,
    services: &'a Services,
    behalf: &Behalf,
) -> Result<ReachedUser<'a>> {
    let (store, agents) = services.agents()?;
    who.require(Need::Read, &Target::Space { space: SPACE, store })?;
    Ok(ReachedUser { services, store, agents, user: user(who, agents, behalf)? })
}

/// Refuses callers who may not write for all users: that needs a credential which is bound to no user,
/// with a scope for the whole space.
fn reach_all_users(who: &Identity, services: &Services, behalf: &Behalf) -> Result<()> {
    let (store, _) = services.agents()?;
    for need in [Need::Read, Need::Write] {
        who.require(need, &Target::Space { space: SPACE, store })?;
    }
    let caller = who.caller();
    if caller.user_id().is_some() || !caller.is_operator() {
        return Err(Problem::forbidden("only an operator can import documents of all users")
            .hint("Leave out all_users, or use a credential that is not bound to a user."));
    }
    match behalf.user {
        Some(_) => Err(Problem::invalid("user and all_users exclude each other")
            .hint("Leave out one of them; nothing was done.")),
        None => Ok(()),
    }
}

impl Reached<'_> {
    /// Its name.
    pub fn name(&self) -> &str {
        self.namespace.name()
    }

    /// The user whose it is.
    pub fn user_id(&self) -> &str {
        self.user.user_id()
    }

    /// Refuses what the scopes do not allow in this namespace.
    fn require(&self, who: &Identity, need: Need) -> Result<()> {
        who.require(need, &Target::Namespace { namespace: self.name(), store: self.store })
    }

    /// Refuses a change that the scopes do not allow, and remembers it for the audit log.
    fn admit(&self, who: &Identity, key: &str) -> Result<Key> {
        let place = place(self.agents, self.user_id(), self.name(), key)?;
        who.touches(&place);
        self.require(who, Need::Write)?;
        Ok(place)
    }

    fn store(&self) -> &Store {
        self.agents.records().store()
    }

    /// Runs an expensive read of the namespace beside the threads that answer requests.
    async fn beside<T, F>(&self, who: &Identity, read: impl FnOnce(Namespace) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = agents::Result<T>> + Send + 'static,
    {
        let read = read(self.namespace.clone());
        self.services.reads().run(who, self.store(), async move { Ok(read.await?) }).await
    }

    /// The name of the store that it is in.
    pub fn store_name(&self) -> &str {
        self.store
    }

    /// Where an entry lies, or all of them, for those who watch.
    pub fn range(&self, key: Option<&str>) -> Result<KeyRange> {
        match key {
            Some(key) => {
                let place = place(self.agents, self.user_id(), self.name(), key)?;
                Ok(KeyRange::exactly(&place))
            }
            None => {
                let values = Bindings::new().with("user", self.user_id());
                let range = pattern(self.agents)?.range(&values.with("namespace", self.name()));
                range.map_err(|error| Problem::invalid(error.to_string()))
            }
        }
    }
}

/// The key of an entry's record.
fn place(agents: &Agents, user: &str, namespace: &str, key: &str) -> Result<Key> {
    let values = Bindings::new().with("user", user).with("namespace", namespace).with("key", key);
    pattern(agents)?.build(&values).map_err(|error| Problem::invalid(error.to_string()))
}

fn pattern(agents: &Agents) -> Result<&Pattern> {
    let mut spaces = agents.records().declarations();
    match spaces.find(|space| space.name == SPACE) {
        Some(space) => Ok(&space.key),
        None => Err(Problem::new(Code::Internal, "there is no place for agents' entries")),
    }
}

impl ReachedUser<'_> {
    /// Runs an expensive read of what is the user's beside the threads that answer requests.
    async fn beside<T, F>(&self, who: &Identity, read: impl FnOnce(UserData) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = agents::Result<T>> + Send + 'static,
    {
        let (read, store) = (read(self.user.clone()), self.agents.records().store());
        self.services.reads().run(who, store, async move { Ok(read.await?) }).await
    }

    /// Refuses what the scopes do not allow in all namespaces.
    pub fn require(&self, who: &Identity, need: Need) -> Result<()> {
        who.require(need, &Target::Space { space: SPACE, store: self.store })
    }
}

/// What is a user's, as the caller reaches it. What is told does not depend on what is stored.
fn user(who: &Identity, agents: &Agents, behalf: &Behalf) -> Result<UserData> {
    let own = who.caller();
    let named = behalf.user.as_deref().map(|user| checked("user", user)).transpose()?;
    let mut caller = match (own.user_id(), named) {
        (Some(bound), Some(named)) if bound != named => {
            return Err(Problem::forbidden(
                "this credential is bound to a user, and reaches no other user's entries",
            )
            .hint("Leave out the user, or use a credential that is bound to nobody."));
        }
        (Some(_), _) => own.clone(),
        (None, _) if !own.is_operator() => {
            return Err(Problem::forbidden("this credential reaches no user's entries")
                .hint("Use a credential that is bound to a user."));
        }
        (None, Some(named)) => acting_for(agents, named),
        (None, None) if who.is_local() => acting_for(agents, LOCAL),
        (None, None) => {
            return Err(Problem::invalid(
                "this credential is bound to no user, so the request must say whose entries it means",
            )
            .hint("Name the user, as in ?user=ada, or use a credential that is bound to one."));
        }
    };
    let agent = behalf.agent.as_deref().map(|agent| checked("agent", agent)).transpose()?;
    match (own.agent_id(), agent) {
        (Some(bound), Some(named)) if bound != named => {
            return Err(Problem::forbidden(
                "this credential is bound to an agent, and the request names another one",
            )
            .hint("Leave out the agent, or use a credential that is bound to none."));
        }
        (Some(agent), _) | (None, Some(agent)) => caller = caller.with_agent(agent),
        (None, None) => {}
    }
    if let Some(run) = behalf.run.as_deref() {
        caller = caller.in_run(checked("run", run)?);
    }
    Ok(agents.caller(&caller)?)
}

/// A user, as one is represented whom no role holds back.
fn acting_for(agents: &Agents, user: &str) -> Caller {
    let spaces = agents.records().declarations().filter(|space| space.name == SPACE);
    let roles = spaces.flat_map(|space| space.read_roles.iter().chain(&space.write_roles));
    roles.cloned().fold(Caller::user(user), Caller::with_role)
}

/// The name of a user, an agent or a run, if it can be one.
pub fn checked<'n>(what: &str, name: &'n str) -> Result<&'n str> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
        let detail = format!(
            "the name of a {what} has 1 to {NAME_BYTES_MAX} bytes and no control characters"
        );
        return Err(Problem::invalid(detail));
    }
    Ok(name)
}
