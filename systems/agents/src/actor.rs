use std::sync::Arc;

use keyward_records::Caller;

use crate::declaration::WRITER_ROLE;
use crate::{Error, Result};

/// In whose name something is done, besides the user's: an agent, and one run of it.
///
/// ```
/// use keyward_agents::Actor;
///
/// let planner = Actor::agent("planner").in_run("r1");
/// assert_eq!((planner.agent_id(), planner.run_id()), (Some("planner"), Some("r1")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Actor {
    agent: Option<Arc<str>>,
    run: Option<Arc<str>>,
}

impl Actor {
    /// How long the id of an agent or a run may be.
    pub const ID_BYTES_MAX: usize = 256;

    /// No agent: the user themselves. Their reads count as nobody's access.
    pub fn nobody() -> Self {
        Self::default()
    }

    /// An agent; nobody, if the id is empty.
    pub fn agent(id: impl AsRef<str>) -> Self {
        Self { agent: named(id.as_ref()), run: None }
    }

    /// The same in one run: what it does is written to the run's operations log. In none, if the id is
    /// empty.
    #[must_use]
    pub fn in_run(mut self, run: impl AsRef<str>) -> Self {
        self.run = named(run.as_ref());
        self
    }

    /// The agent's id.
    pub fn agent_id(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    pub(crate) fn shared_agent_id(&self) -> Option<&Arc<str>> {
        self.agent.as_ref()
    }

    /// The run.
    pub fn run_id(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Refuses ids that are too long to be kept with everything that is done.
    pub(crate) fn check(&self) -> Result<()> {
        for (whose, id) in [("an agent", &self.agent), ("a run", &self.run)] {
            if let Some(id) = id.as_ref().filter(|id| id.len() > Self::ID_BYTES_MAX) {
                let (bytes, bytes_max) = (id.len(), Self::ID_BYTES_MAX);
                let message =
                    format!("the id of {whose} is {bytes} bytes long; at most {bytes_max} fit");
                return Err(Error::Invalid(message));
            }
        }
        Ok(())
    }

    /// The user, acting through this agent.
    pub(crate) fn caller(&self, user: &str) -> Caller {
        let mut caller = Caller::user(user).with_role(WRITER_ROLE);
        if let Some(agent) = &self.agent {
            caller = caller.with_agent(agent);
        }
        if let Some(run) = &self.run {
            caller = caller.in_run(run);
        }
        caller
    }
}

impl From<&Caller> for Actor {
    fn from(caller: &Caller) -> Self {
        let agent = caller.agent_id().and_then(named);
        Self { agent, run: caller.run_id().and_then(named) }
    }
}

fn named(id: &str) -> Option<Arc<str>> {
    (!id.is_empty()).then(|| id.into())
}
