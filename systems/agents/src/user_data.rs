use std::fmt;
use std::sync::Arc;

use keyward_engine::Commit;
use keyward_key::Bindings;
use keyward_records::{Caller, Space};

use crate::actor::Actor;
use crate::agents::{Agents, Shared};
use crate::declaration::{self, SPACE, USER};
use crate::namespace::Namespace;
use crate::track::Line;
use crate::{Error, Result};

/// The namespace that is meant when none is named.
const DEFAULT_NAMESPACE: &str = "default";

/// What agents keep for one user, as one agent reaches it. Cheap to clone.
#[derive(Clone)]
pub struct UserData {
    pub(crate) agents: Agents,
    pub(crate) user: Arc<str>,
    pub(crate) actor: Actor,
    pub(crate) caller: Caller,
}

impl UserData {
    /// A namespace of the user's: any text that is not empty, such as `files:apache/repo`. It need not
    /// have entries yet.
    pub fn use_namespace(&self, name: &str) -> Result<Namespace> {
        if name.is_empty() {
            return Err(Error::Invalid("a namespace has a name".to_owned()));
        }
        let space = self.space()?;
        let prefix = declaration::prefix(space.declaration(), &self.user, Some(name))?;
        Ok(Namespace {
            agents: self.agents.clone(),
            space,
            user: self.user.clone(),
            actor: self.actor.clone(),
            namespace: name.into(),
            prefix,
            rider: Commit::new(),
        })
    }

    /// The namespace that is meant when none is named: `default`.
    pub fn default_namespace(&self) -> Result<Namespace> {
        self.use_namespace(DEFAULT_NAMESPACE)
    }

    /// The user's id.
    pub fn user_id(&self) -> &str {
        &self.user
    }

    /// The agent data store that it is in.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// In whose name things are done.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.agents.shared
    }

    pub(crate) fn space(&self) -> Result<Space> {
        if self.user.is_empty() {
            return Err(Error::Invalid("a user has an id".to_owned()));
        }
        self.actor.check()?;
        Ok(self.shared().records.space(SPACE, &self.caller)?)
    }

    /// Refuses who may not read the user's entries: they may not read what was done to them either.
    pub(crate) fn admit_read(&self) -> Result<()> {
        self.space()?.range(Bindings::new().with(USER, &*self.user))?;
        Ok(())
    }

    /// Writes what was done to the log of the run, if there is one.
    pub(crate) fn log(&self, line: Line<'_>) {
        self.shared().log(&self.user, &self.actor, line);
    }
}

impl Shared {
    /// Writes what was done to the log of the run, if there is one.
    pub fn log(&self, user: &str, actor: &Actor, line: Line<'_>) {
        let Some(run) = actor.run_id() else { return };
        self.tracker.log(user, run, actor.agent_id(), self.clock.now(), line);
    }
}

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("UserData");
        shown.field("user", &self.user).field("actor", &self.actor).finish_non_exhaustive()
    }
}
