//! Locks: held by whoever has their tickets.

use keyward::Code;
use rmcp::model::Tool;
use serde_json::json;

use super::schema::{count, flag, gives, number, store as store_argument, takes, text, texts};
use super::{Call, Done, Effect, store, stores, tool};
use crate::api::locks;
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::http::locks::{AcquireBody, RenewBody, TicketBody, granted, renewed};
use crate::http::text::Object;
use crate::http::ticket;
use crate::mcp::arguments::read;
use crate::problem::{Problem, Result};

pub(super) fn tools(app: &App, who: &Identity) -> Vec<Tool> {
    if !stores(app, who, Need::Write).any(|served| served.locks().is_ok()) {
        return Vec::new();
    }
    let store = || store_argument(app, who, Need::Write);
    let lease = || {
        json!({
            "ticket": text("What stands for the lock: keep it for lock_renew and lock_release."),
            "token": count("Higher than that of every lock of the root granted before."),
            "ttl": number("The lease, in seconds."),
            "left": number("How much of the lease is left, in seconds."),
        })
    };
    let roots = match who.bound_to() {
        Some(user) => format!("The key that the locks are below; it begins with user:{user}:"),
        None => "The key that the locks are below, such as page:7.".to_owned(),
    };
    let acquire = tool(
        "lock_acquire",
        "Take a lock",
        "Takes a lock on a root or on paths below it, so that nobody else does the same work at the \
         same time. It ends by itself when its lease is over: renew it before three quarters of it \
         have passed, and release it when the work is done. If somebody else has it, the answer says \
         who; call again with a longer wait."
            .to_owned(),
        Effect::Adds,
        (
            takes(
                json!({
                    "store": store(),
                    "root": text(&roots),
                    "paths": texts("What to lock below the root, all together; everything, if left out."),
                    "mode": {
                        "type": "string",
                        "enum": ["exclusive", "shared"],
                        "description": "exclusive, if left out: nobody else. shared: with others who share it.",
                    },
                    "ttl": number("For how many seconds the lock outlives a holder that does not renew it; 120, if left out."),
                    "wait": number("For how many seconds to wait for others, up to 25; none, if left out."),
                    "purpose": text("What for, for others who look."),
                    "under": text("The ticket of a lock of one's own that lies above."),
                }),
                &["root"],
            ),
            {
                let mut members = lease();
                members["root"] = text("The root.");
                members["paths"] = texts("What is locked.");
                members["mode"] = text("exclusive or shared.");
                gives(members, &["ticket", "token", "root", "paths", "mode", "ttl", "left"])
            },
        ),
    );
    let renew = tool(
        "lock_renew",
        "Renew a lock",
        "Renews the lease of a lock that is held. If it is lost, stop the work that it was for."
            .to_owned(),
        Effect::Sets,
        (
            takes(
                json!({
                    "store": store(),
                    "ticket": text("The ticket that lock_acquire gave."),
                    "outrun": flag("Whether what was sent under this ticket and has not landed is refused from now on; the answer then has another ticket."),
                }),
                &["ticket"],
            ),
            gives(lease(), &["ticket", "token", "ttl", "left"]),
        ),
    );
    let release = tool(
        "lock_release",
        "Release a lock",
        "Gives a lock back. One that is gone already is no error.".to_owned(),
        Effect::Removes,
        (
            takes(
                json!({ "store": store(), "ticket": text("The ticket that lock_acquire gave.") }),
                &["ticket"],
            ),
            gives(
                json!({ "released": flag("That it is not held by this ticket.") }),
                &["released"],
            ),
        ),
    );
    vec![acquire, renew, release]
}

pub(super) async fn acquire(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let served = store(call, arguments.take_text("store")?.as_deref())?;
    let text = arguments.text();
    let asked = read::<AcquireBody>(&text)?.asked(&call.app)?;
    let acquiring = locks::acquire(&call.who, served, &asked, None);
    let held =
        call.app.waits().during(&call.who, asked.wait, call.app.lifecycle(), acquiring).await?;
    Ok(Done::Told(granted(&asked, &held)?))
}

pub(super) async fn renew(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let served = store(call, arguments.take_text("store")?.as_deref())?;
    let text = arguments.text();
    let RenewBody { ticket, outrun } = read(&text)?;
    let (held, lease) = locks::renew(&call.who, served, ticket::read(&ticket)?, outrun).await?;
    Ok(Done::Told(renewed(&held, lease)?))
}

pub(super) async fn release(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let served = store(call, arguments.take_text("store")?.as_deref())?;
    let text = arguments.text();
    let TicketBody { ticket } = read(&text)?;
    locks::release(&call.who, served, &ticket::read(&ticket)?).await?;
    Ok(Done::Told(Object::new().raw("released", "true").finish()))
}

pub(super) fn next(problem: &Problem) -> Option<String> {
    Some(match problem.code() {
        Code::Locked | Code::TimedOut => {
            "call lock_acquire again with wait: 25, or do something else first.".to_owned()
        }
        Code::LockLost => {
            "stop what was done under this lock; then call lock_acquire anew.".to_owned()
        }
        Code::OldTicket => "use the ticket of the latest lock_renew.".to_owned(),
        _ => return None,
    })
}
