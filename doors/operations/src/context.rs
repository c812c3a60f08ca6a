//! The context of a request: its caller, the services, and its idempotency mark.

use crate::api::spaces::{Reached, reach};
use crate::authorize;
use crate::facts::{Effect, Facts};
use crate::idempotency::Mark;
use crate::identity::Identity;
use crate::input::Input;
use crate::operation::Operation;
use crate::problem::{Problem, Result};
use crate::services::Services;

/// The context of a request: its caller, the services, and its idempotency mark.
#[derive(Debug, Clone)]
pub struct Context {
    who: Identity,
    services: Services,
    /// The idempotency key that the caller chose.
    chosen: Option<String>,
    mark: Option<Mark>,
}

impl Context {
    /// A caller and the services.
    pub fn new(who: Identity, services: Services) -> Self {
        Self { who, services, chosen: None, mark: None }
    }

    /// The same for a request that may be sent again under this idempotency key.
    #[must_use]
    pub fn idempotent(self, chosen: impl Into<String>) -> Self {
        Self { chosen: Some(chosen.into()), ..self }
    }

    /// The caller.
    pub fn who(&self) -> &Identity {
        &self.who
    }

    /// The services.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// A space, as the caller reaches it.
    pub fn space(&self, name: &str) -> Result<Reached<'_>> {
        reach(&self.who, self.services.stores(), name)
    }

    /// The idempotency mark, written in the commit that does the request; none without an idempotency key.
    pub fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref()
    }

    /// Checks what the caller may do, and runs the operation.
    pub async fn run<O: Operation>(&self, request: O) -> Result<O::Response> {
        if let Err(problem) = authorize::check(&self.who, &self.services, &request.needs()) {
            if O::FACTS.audited()
                && let Some(key) = request.key()
            {
                self.who.touches(key);
            }
            return Err(problem);
        }
        request.run(self).await
    }

    /// Makes the idempotency mark from the key and the fingerprint of the request.
    pub(crate) fn remember(&mut self, facts: &Facts, input: &Input<'_>) -> Result<()> {
        let Some(chosen) = &self.chosen else { return Ok(()) };
        if facts.effect == Effect::Reads {
            return Ok(());
        }
        if !facts.idempotent {
            return Err(Problem::invalid("this operation takes no idempotency key")
                .hint("Leave it out: sent again, the request does nothing twice."));
        }
        let asked = input.fingerprint();
        let parts: Vec<&[u8]> =
            std::iter::once(facts.id.as_bytes()).chain(asked.iter().map(Vec::as_slice)).collect();
        self.mark = Some(Mark::new(&self.who, chosen, &parts)?);
        Ok(())
    }
}
