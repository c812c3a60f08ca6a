use std::sync::Arc;

use keyward_records::Caller;

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
    /// No agent: the user themselves. Their reads count as nobody's access.
    pub fn nobody() -> Self {
        Self::default()
    }

    /// An agent.
    pub fn agent(id: impl AsRef<str>) -> Self {
        Self { agent: Some(id.as_ref().into()), run: None }
    }

    /// The same in one run: what it does is written to the run's operations log.
    #[must_use]
    pub fn in_run(mut self, run: impl AsRef<str>) -> Self {
        self.run = Some(run.as_ref().into());
        self
    }

    /// The agent's id.
    pub fn agent_id(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// The run.
    pub fn run_id(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// The user, acting through this agent.
    pub(crate) fn caller(&self, user: &str) -> Caller {
        let mut caller = Caller::user(user);
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
        Self { agent: caller.agent_id().map(Into::into), run: caller.run_id().map(Into::into) }
    }
}
