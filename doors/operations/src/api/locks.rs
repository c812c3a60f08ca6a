//! The locks of a store, held by whoever has their tickets: this server remembers none of them.

use std::time::Duration;

use keyward::locks::{
    Broken, Error, Holder, LockPath, Mode, Renewal, Request, Root, Standing, Target, Ticket, Tried,
    Who,
};
use keyward::rules::SparedRoots;
use keyward::{Code, Commit, Cursor, Key};
use serde_json::json;

use crate::authorize::{admit_root, is_shown, refused};
use crate::idempotency::Mark;
use crate::identity::{Identity, Need, Target as Place};
use crate::problem::{Problem, Result};
use crate::stores::Served;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    pub root: Key,
    /// Names as the root's lock tree has them.
    pub paths: Vec<String>,
    pub mode: Mode,
    pub ttl: Duration,
    pub wait: Duration,
    pub purpose: String,
    /// A lock of the same owner.
    pub under: Option<Ticket>,
}

/// A lock that was granted.
#[derive(Debug, Clone)]
pub struct Granted {
    pub ticket: Ticket,
    pub paths: Vec<String>,
    pub mode: Mode,
    pub lease: Renewal,
}

/// Takes a lock, waiting for others. With a mark, the same request gets the same grant while it is
/// held.
pub async fn acquire(
    who: &Identity,
    served: &Served,
    asked: &Asked,
    mark: Option<&Mark>,
) -> Result<Granted> {
    admit_root(who, served, &asked.root, Need::Write)?;
    let locks = served.locks()?;
    let root = locks.root(asked.root.clone())?;
    let names = if asked.paths.is_empty() { &[String::new()][..] } else { &asked.paths };
    let paths = names.iter().map(|name| path(&root, name)).collect::<Result<Vec<_>>>()?;
    let mut request = Request::default()
        .ttl(asked.ttl)
        .wait_max(asked.wait)
        .purpose(&asked.purpose)
        .who(Who { name: who.credential().to_owned(), ..Who::default() });
    if let Some(mark) = mark {
        request = request.named(mark.name());
    }
    if let Some(ticket) = &asked.under {
        if ticket.root() != root.key() {
            return Err(Problem::invalid("under is the ticket of a lock on another root"));
        }
        request = locks.under(ticket, request).await?;
    }
    let guard = match root.ask(&paths, asked.mode, &request).await {
        Ok(Tried::Granted(guard)) => guard,
        Ok(Tried::Held(holder)) => return Err(locked(&root, &holder)),
        Err(Error::IdTaken { .. }) => {
            let detail = "this idempotency key was used for another lock";
            return Err(Problem::new(Code::IdempotencyReuse, detail)
                .hint("Choose a new key for each lock, and send the same request with it again."));
        }
        Err(error) => return Err(error.into()),
    };
    // Nothing is waited for between the grant and here: a client that is gone by now leaves a lock
    // that ends with its lease.
    let (paths, lease) = (guard.paths(), Renewal { ttl: guard.ttl(), left: guard.left() });
    let paths = paths.iter().map(|path| root.name(path)).collect();
    Ok(Granted { mode: guard.mode(), paths, lease, ticket: guard.detach() })
}

/// Who is in the way.
fn locked(root: &Root, holder: &Holder) -> Problem {
    let names: Vec<String> = holder.paths.iter().map(|path| root.name(path)).collect();
    let (age, who) = (holder.age.as_secs_f64(), &holder.who);
    let detail = format!("{} of {} is held or awaited by {who}", names.join(" and "), root.key());
    Problem::new(Code::Locked, detail)
        .hint("Ask again, with a time to wait; or look who holds it: GET …/locks?root=…")
        .retryable()
        .with("root", root.key().to_string())
        .with(
            "holder",
            json!({
                "token": holder.token,
                "paths": names,
                "mode": holder.mode,
                "who": who,
                "since": holder.since,
                "age": age,
            }),
        )
}

fn path(root: &Root, name: &str) -> Result<LockPath> {
    Ok(root.path(name)?)
}

/// Renews the lease of a lock. If asked to, everything that was sent under the ticket and has not
/// landed is refused from now on, and the ticket is another one.
pub async fn renew(
    who: &Identity,
    served: &Served,
    ticket: Ticket,
    outrun: bool,
) -> Result<(Ticket, Renewal)> {
    admit_root(who, served, ticket.root(), Need::Write)?;
    let locks = served.locks()?;
    let ticket = if outrun { locks.outrun(&ticket).await? } else { ticket };
    let renewal = locks.renew(&ticket).await?;
    Ok((ticket, renewal))
}

/// Gives a lock back; one that is gone is left alone.
pub async fn release(who: &Identity, served: &Served, ticket: &Ticket) -> Result<()> {
    admit_root(who, served, ticket.root(), Need::Write)?;
    Ok(served.locks()?.release(ticket).await?)
}

/// Who holds what below a root, and who waits.
pub async fn standing(who: &Identity, served: &Served, root: Key) -> Result<(Root, Standing)> {
    admit_root(who, served, &root, Need::Read)?;
    let root = served.locks()?.root(root)?;
    let standing = root.list().await?;
    Ok((root, standing))
}

/// A page of the roots on which something is held or wanted, and the cursor of the next one.
pub async fn roots(
    who: &Identity,
    served: &Served,
    limit: usize,
    cursor: Option<&str>,
) -> Result<(Vec<Key>, Option<String>)> {
    who.require(Need::Read, &Place::Store(&served.name))?;
    if let Some(user) = who.bound_to() {
        return Err(Problem::forbidden("this credential sees the locks of one root at a time")
            .hint(format!("Name a root below user:{user}: with ?root=…")));
    }
    let mut question = served.records.question(who.caller()).await?;
    question.part(b"locks");
    question.part(who.tenant().name().as_bytes());
    let now = served.records.clock().now();
    let after = match cursor {
        Some(cursor) => Some(Cursor::new(question.position(cursor, now)?)),
        None => None,
    };
    let page = served.locks()?.roots(after, limit).await?;
    let next = page.next.map(|cursor| question.cursor(cursor.as_bytes(), now));
    Ok((page.roots.into_iter().filter(is_shown).collect(), next))
}

/// Which locks are to be broken.
#[derive(Debug, Clone)]
pub enum Breaking {
    /// All on a path, by its name.
    Path(String),
    /// The one with a token. Once it is broken, it stays so.
    Token(u64),
}

/// Takes locks away from their holders.
pub async fn break_lock(
    who: &Identity,
    served: &Served,
    root: Key,
    breaking: &Breaking,
    reason: &str,
) -> Result<(Root, Vec<Broken>)> {
    admit_root(who, served, &root, Need::Admin)?;
    let root = served.locks()?.root(root)?;
    let target = match breaking {
        Breaking::Path(name) => Target::Path(path(&root, name)?),
        Breaking::Token(token) => Target::Token(*token),
    };
    let broken = match (root.break_lock(&target, who.credential(), reason).await, &target) {
        (Err(Error::NotHeld { root: at, what, held }), Target::Token(token)) => {
            // It may have been broken by a request whose answer was lost.
            let known = root.list().await?.broken.into_iter().find(|it| it.token == *token);
            vec![known.ok_or(Error::NotHeld { root: at, what, held })?]
        }
        (broken, _) => broken?,
    };
    Ok((root, broken))
}

/// Whether a commit may write to roots of locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roots {
    /// They belong to their locks: a commit that would write one is refused.
    Spared,
    /// The caller keeps locks itself.
    Reached,
}

/// What the server adds to a commit: the lock that it depends on, and that it touches no root of locks.
#[derive(Debug)]
pub struct Fenced<'t> {
    /// The lock, and the index of its check.
    lock: Option<(&'t Ticket, usize)>,
    /// The roots that it spares.
    spared: SparedRoots,
}

impl<'t> Fenced<'t> {
    /// Makes a commit depend on a lock, if there is one, and keeps it from roots of locks, if it must be.
    pub async fn add(
        who: &Identity,
        served: &Served,
        mut commit: Commit,
        (lock, roots): (Option<&'t Ticket>, Roots),
    ) -> Result<(Commit, Self)> {
        let lock = match lock {
            Some(ticket) => {
                admit_root(who, served, ticket.root(), Need::Write)?;
                commit.checks.push(served.locks()?.fence(ticket)?);
                Some((ticket, commit.checks.len() - 1))
            }
            None => None,
        };
        let spared = match roots {
            Roots::Spared => {
                let spared = SparedRoots::add(served.store(), &mut commit).await?;
                spared.map_err(refused)?
            }
            Roots::Reached => SparedRoots::none(),
        };
        Ok((commit, Self { lock, spared }))
    }

    /// Says why, if a commit failed for what was added to it.
    pub async fn check(&self, served: &Served, failed: &[usize]) -> Result<()> {
        self.spared.check(failed).map_err(refused)?;
        match &self.lock {
            Some((ticket, at)) if failed.contains(at) => {
                Err(served.locks()?.refused(ticket).await.into())
            }
            _ => Ok(()),
        }
    }
}

/// Refuses keys of which one is a root of locks, as far as that is known now.
pub(super) async fn refuse_roots(served: &Served, keys: &[Key]) -> Result<()> {
    SparedRoots::find(served.store(), keys).await?.map_err(refused)
}
