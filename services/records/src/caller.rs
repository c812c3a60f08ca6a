use std::collections::BTreeSet;
use std::sync::Arc;

/// Who is asking. Made by whoever has established that: a program for itself, a server from a
/// credential; never from what a request says about itself.
///
/// ```
/// use keyward_records::Caller;
///
/// let ada = Caller::user("ada").with_agent("planner").in_run("r1").with_role("editor");
/// assert_eq!((ada.user_id(), ada.run_id()), (Some("ada"), Some("r1")));
/// assert!(ada.has_role("editor") && !ada.is_operator());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    user: Option<Arc<str>>,
    agent: Option<Arc<str>>,
    run: Option<Arc<str>>,
    roles: BTreeSet<String>,
    operator: bool,
}

impl Caller {
    /// A user: reaches what they own, and what is shared.
    pub fn user(id: impl AsRef<str>) -> Self {
        Self { user: Some(id.as_ref().into()), ..Self::anonymous() }
    }

    /// Nobody in particular: reaches what is shared.
    pub fn anonymous() -> Self {
        Self { user: None, agent: None, run: None, roles: BTreeSet::new(), operator: false }
    }

    /// The one who runs the store: no owner rule and no role holds them back.
    pub fn operator() -> Self {
        Self { operator: true, ..Self::anonymous() }
    }

    /// The same, acting through an agent.
    #[must_use]
    pub fn with_agent(mut self, agent: impl AsRef<str>) -> Self {
        self.agent = Some(agent.as_ref().into());
        self
    }

    /// The same in one run of the agent: what history tells apart when an agent works again and again.
    #[must_use]
    pub fn in_run(mut self, run: impl AsRef<str>) -> Self {
        self.run = Some(run.as_ref().into());
        self
    }

    /// The same with one role more.
    #[must_use]
    pub fn with_role(mut self, role: impl Into<String>) -> Self {
        self.roles.insert(role.into());
        self
    }

    /// The user's id.
    pub fn user_id(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The agent's id.
    pub fn agent_id(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// The run of the agent.
    pub fn run_id(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Whether the caller has a role.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.contains(role)
    }

    /// Whether this is the one who runs the store.
    pub fn is_operator(&self) -> bool {
        self.operator
    }
}
