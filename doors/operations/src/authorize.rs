//! Which entries of a store a caller reaches: the one rule of every operation on raw keys.
//!
//! A credential that is bound to a user reaches what lies below `user:{its user}`, and reads what
//! lies below `shared`; of the records among them, what the roles and the owner rule of their space let
//! them read. Nobody reaches Keyward's own keys below `system`, and nobody writes keys that are made by
//! something else: records of declared spaces, their indexes, locks, queues, registries, workspaces. Which
//! keys these are is for [`keyward::rules`] to say, as it is for the command.
//! The catalog of a root that no lock tree declares looks like any entry: commits check for it
//! (`api/locks.rs`).
//!
//! Through the routes of engines (`api/raw.rs`) somebody who may run a store, and is nobody in
//! particular, reaches Keyward's own keys as well: indexes, locks, queues, catalogs; those of a registry
//! or a workspace that this server keeps they only read, since what they hold goes by a run or a task.
//! What the server itself goes by, its API keys, its audit log, what it has counted and which requests it
//! has done, nobody reaches, whichever store it lies in.

use keyward::agents::SPACE;
use keyward::rules::{Keeper, Reserved};
use keyward::{Code, Key, KeyRange, Prefix};

use crate::api::spaces::reach;
use crate::identity::{Identity, Need, Target};
use crate::problem::{Problem, Result};
use crate::services::Services;
use crate::stores::Served;
use crate::visibility::Sight;

const OWN: &str = "user";
const SHARED: &str = "shared";
const MACHINERY: &str = "system";
/// What the server itself goes by, below [`MACHINERY`].
const OF_THE_SERVER: [&str; 2] = ["server", "idempotency"];

/// What a caller must be allowed to do for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs<'r> {
    /// Something in a store.
    Store {
        /// The store's name.
        store: &'r str,
        /// What.
        need: Need,
    },
    /// Something in a declared space.
    Space {
        /// The space's name.
        space: &'r str,
        /// What.
        need: Need,
    },
}

/// Checks that a caller may make a request: the store or space exists, and a scope reaches it. What the request may
/// do to a single key is checked with the key.
pub fn check(who: &Identity, services: &Services, needs: &Needs<'_>) -> Result<()> {
    match needs {
        Needs::Store { store, need } => {
            who.require(*need, &Target::Store(&services.store(store)?.name))
        }
        Needs::Space { space, need } => reach(who, services.stores(), space)?.require(who, *need),
    }
}

/// Lets a caller read or write the entry of a key, or says which rule is against it. What it says
/// does not depend on what is stored.
pub fn admit(who: &Identity, served: &Served, key: &Key, need: Need) -> Result<()> {
    admit_any(who, served, key, need)?;
    if need > Need::Read && served.rules.holds_locks(key) {
        return Err(refused(Reserved { key: key.clone(), keeper: Keeper::Locks }));
    }
    Ok(())
}

/// The same for keys that may be roots of locks.
fn admit_any(who: &Identity, served: &Served, key: &Key, need: Need) -> Result<()> {
    if need > Need::Read {
        who.touches(key);
    }
    who.require(need, &Target::Store(&served.name))?;
    let first = key.first();
    if first == MACHINERY {
        return Err(refused(Reserved { key: key.clone(), keeper: Keeper::Machinery }));
    }
    if let Some(user) = who.bound_to() {
        let mut segments = key.segments();
        segments.next();
        let own = first == OWN && segments.next().as_deref() == Some(user);
        let shared = first == SHARED && need == Need::Read;
        if !(own || shared) {
            return Err(foreign(user));
        }
    }
    if need == Need::Read {
        return readable(who, served, key);
    }
    match served.rules.keeper(key) {
        Some(keeper) => Err(refused(Reserved { key: key.clone(), keeper })),
        None => Ok(()),
    }
}

/// Refuses a record that its space does not let the caller read, as the space itself does.
fn readable(who: &Identity, served: &Served, key: &Key) -> Result<()> {
    if who.caller().is_operator() {
        return Ok(());
    }
    match served.rules.space_of(key) {
        Some(space) => Ok(served.records.space(space, who.caller())?.admit_read(key)?),
        None => Ok(()),
    }
}

/// Lets a caller use the locks below a root. The pages of a workspace are locked by those who may write
/// in the workspace. A credential that is bound to a user reaches only their
/// own: who holds what of others, and what is shared, is not for them to see.
pub fn admit_root(who: &Identity, served: &Served, root: &Key, need: Need) -> Result<()> {
    admit_any(who, served, root, need)?;
    if let Some(workspace) = served.rules.workspace().filter(|_| served.rules.is_page(root))
        && need > Need::Read
        && !who.scopes().name_workspace(need, workspace)
    {
        let detail = format!(
            "{root} is a page of the workspace {workspace}, which no scope of this credential names"
        );
        return Err(Problem::forbidden(detail).hint(format!(
            "Use a credential that also has the scope {need}:agreements/{workspace}."
        )));
    }
    match who.bound_to() {
        Some(user) if root.first() != OWN => Err(foreign(user)),
        _ => Ok(()),
    }
}

/// Lets a caller use what is the store's, and no user's: registries, workspaces.
pub fn admit_to(who: &Identity, need: Need, target: &Target<'_>, all: &str) -> Result<()> {
    who.require(need, target)?;
    match who.bound_to() {
        None => Ok(()),
        Some(_) => {
            let detail = format!("{all} are the store's, and this credential is bound to a user");
            Err(Problem::forbidden(detail).hint("Use a credential that is not bound to a user."))
        }
    }
}

/// Lets a caller list or watch below a prefix, and gives what of it they see.
pub fn admit_prefix(who: &Identity, served: &Served, prefix: &Prefix) -> Result<Sight> {
    who.require(Need::Read, &Target::Store(&served.name))?;
    let mut segments = prefix.segments();
    let first = segments.next();
    if first.as_deref() == Some(MACHINERY) {
        return Err(Problem::new(Code::Reserved, format!("{prefix} belongs to Keyward itself"))
            .hint("List something else."));
    }
    if let Some(user) = who.bound_to() {
        match first.as_deref() {
            Some(SHARED) => {}
            Some(OWN) if segments.next().as_deref() == Some(user) => {}
            _ => return Err(foreign(user)),
        }
    }
    // Keyward's own keys are not shown here, whoever asks.
    Sight::new(vec![Key::from_stored(MACHINERY)], who, served)
}

/// Whether a key is none of Keyward's own.
pub fn is_shown(key: &Key) -> bool {
    key.first() != MACHINERY
}

/// Lets a caller read or write an entry as an engine does. What it says does not depend on what is
/// stored.
pub fn admit_raw(who: &Identity, served: &Served, key: &Key, need: Need) -> Result<()> {
    if !runs(who, served) {
        return admit(who, served, key, need);
    }
    if need > Need::Read {
        who.touches(key);
    }
    who.require(need, &Target::Store(&served.name))?;
    if closed_to(who, served).iter().any(|root| KeyRange::subtree(root).contains(key)) {
        return Err(refused(Reserved { key: key.clone(), keeper: Keeper::Machinery }));
    }
    match served.rules.system_of(key).filter(|_| need > Need::Read) {
        Some(keeper) => Err(refused(Reserved { key: key.clone(), keeper })),
        None => Ok(()),
    }
}

/// Lets a caller scan or watch a range as an engine does, and gives what of it they see.
pub fn admit_range(who: &Identity, served: &Served, range: &KeyRange) -> Result<Sight> {
    who.require(Need::Read, &Target::Store(&served.name))?;
    let closed = closed_to(who, served);
    let within = |root: &Key| range.is_within(&KeyRange::subtree(root));
    if !range.is_empty() && closed.iter().any(within) {
        return Err(Problem::new(Code::Reserved, "this range belongs to Keyward itself")
            .hint("Ask for another one."));
    }
    if let Some(user) = who.bound_to() {
        let roots = [Key::from_segments([OWN, user]), Key::from_segments([SHARED])];
        if !roots.iter().flatten().any(within) {
            return Err(foreign(user));
        }
    }
    Sight::new(closed, who, served)
}

/// Whether a caller may run a store, and is nobody in particular.
pub fn runs(who: &Identity, served: &Served) -> bool {
    who.bound_to().is_none() && who.scopes().allow(Need::Admin, &Target::Store(&served.name))
}

/// What a caller does not reach as an engine does, whatever range they ask for: some keys and all
/// below them.
fn closed_to(who: &Identity, served: &Served) -> Vec<Key> {
    // A plain word is its own encoding.
    let machinery = Key::from_stored(MACHINERY);
    match runs(who, served) {
        true => OF_THE_SERVER.iter().map(|part| machinery.child(part)).collect(),
        false => vec![machinery],
    }
}

/// Why a key is not written, and how it is.
pub(super) fn refused(reserved: Reserved) -> Problem {
    let key = &reserved.key;
    let hint = match &reserved.keeper {
        Keeper::Space(space) if space == SPACE => {
            "Write it as an agent's entry, through /v1/agents.".to_owned()
        }
        Keeper::Space(space) => format!(
            "Write it as a record, so that its indexes stay right: /v1/spaces/{space}/records/{key}"
        ),
        Keeper::Registry(registry) => format!(
            "Change the documents where they are kept, and run the registry: \
             POST /v1/registries/{registry}/runs"
        ),
        Keeper::Workspace(workspace) => {
            let workspace = workspace.as_deref().unwrap_or("{workspace}");
            format!("Change it through its workspace: /v1/agreements/{workspace}")
        }
        Keeper::Locks => "Keep what is locked at another key, such as one below it.".to_owned(),
        _ => "Use a key that begins with another word.".to_owned(),
    };
    Problem::new(Code::Reserved, reserved.to_string()).hint(hint)
}

fn foreign(user: &str) -> Problem {
    let own = Prefix::from_segments([OWN, user]);
    Problem::forbidden(format!(
        "this credential reaches what lies below {own}, and reads what lies below {SHARED}:"
    ))
    .hint("Change the key, or use a credential that is not bound to a user.")
}
