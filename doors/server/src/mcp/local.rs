//! The user whom an agent without a credential works for.

use keyward::records::Caller;

use super::LocalUser;
use crate::api::agents;
use crate::app::App;
use crate::problem::Result;

/// The caller as whom records and agents' entries are asked for: what is another user's is out of reach. Without
/// roles of their own, the user has every role that the schema names.
pub(super) fn caller(app: &App, user: &LocalUser) -> Result<Caller> {
    let caller = Caller::user(agents::checked("user", &user.name)?);
    if let Some(roles) = &user.roles {
        return Ok(roles.iter().cloned().fold(caller, Caller::with_role));
    }
    let agents = app.agents().ok().map(|(_, agents)| agents.records());
    let records = app.stores().iter().map(|served| &served.records).chain(agents);
    let spaces = records.flat_map(|records| records.declarations());
    let roles = spaces.flat_map(|space| space.read_roles.iter().chain(&space.write_roles));
    Ok(roles.cloned().fold(caller, Caller::with_role))
}
