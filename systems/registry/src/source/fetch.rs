//! Bringing the newest commit of a branch into reach.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use gix::ObjectId;
use gix::Remote;
use gix::credentials::helper::Action;
use gix::credentials::protocol::Outcome;
use gix::hash::Kind;
use gix::progress::Discard;
use gix::protocol::transport::client::blocking_io::Transport;
use gix::remote::fetch::{RefMap, Shallow, Tags};
use gix::remote::{Connection, Direction, ref_map};

use super::cache::{Cache, open_isolated};
use super::error::told;
use super::interrupt::Interrupt;
use super::meter::Meter;
use super::{Account, Credentials, Error, Options, Result, transport};

/// Where the cache keeps what it has fetched last.
const TIP: &str = "refs/keyward/tip";
/// What names a repository's default branch.
const HEAD: &str = "HEAD";

/// A repository and the commit that is the newest of its branch now.
pub(super) struct Fetched {
    pub(super) repository: gix::ThreadSafeRepository,
    pub(super) commit: ObjectId,
}

/// Opens a repository on this machine, in place.
pub(super) fn here(path: &Path, options: &Options) -> Result<Fetched> {
    let shown = || options.repository.clone();
    let repository = open_isolated(path).map_err(|error| {
        let (repository, reason) = (shown(), told(&error));
        Error::NoRepository { repository, reason }
    })?;
    let unreadable = |error: gix::Error| {
        let (repository, what, reason) = (shown(), "the branch".to_owned(), told(&error));
        Error::Unreadable { repository, what, reason }
    };
    let local = repository.to_thread_local();
    let commit = match &options.branch {
        Some(branch) => {
            let name = full_name(branch)?;
            match local.try_find_reference(name.as_str()).map_err(unreadable)? {
                Some(mut reference) => Some(reference.peel_to_id().map_err(unreadable)?.detach()),
                None if local.head().is_ok_and(|head| head.is_unborn())
                    && !has_branches(&local) =>
                {
                    None
                }
                None => return Err(no_branch(options, branch)),
            }
        }
        None => {
            let head = local.head().map_err(unreadable)?;
            head.try_into_peeled_id().map_err(unreadable)?.map(gix::Id::detach)
        }
    };
    match commit {
        Some(commit) => Ok(Fetched { repository, commit }),
        None => Err(Error::Empty { repository: shown() }),
    }
}

fn has_branches(repository: &gix::Repository) -> bool {
    let references = repository.references();
    references
        .is_ok_and(|all| all.local_branches().is_ok_and(|mut branches| branches.next().is_some()))
}

fn full_name(branch: &str) -> Result<String> {
    let name = format!("refs/heads/{branch}");
    match gix::refs::FullName::try_from(name.as_str()) {
        Ok(_) => Ok(name),
        Err(_) => Err(Error::Options(format!("{branch:?} cannot be the name of a branch"))),
    }
}

fn no_branch(options: &Options, branch: &str) -> Error {
    Error::NoBranch { repository: options.repository.clone(), branch: branch.to_owned() }
}

/// A fetch from another machine into a cache that nobody else changes meanwhile.
pub(super) struct Fetch<'a> {
    pub(super) url: &'a gix::Url,
    pub(super) options: &'a Options,
    pub(super) cache: &'a Cache,
    pub(super) interrupt: &'a Arc<Interrupt>,
}

enum Received {
    Commit(ObjectId),
    /// The other side has ids of another kind than the repository that was to take them.
    OtherFormat(Kind),
}

/// When a fetch failed: before anything was sent, or while it was received.
enum Failed {
    Asking(Error),
    Receiving(Error),
}

impl Fetch<'_> {
    /// Fetches what is new, or everything if there is no cache that could be added to.
    pub(super) fn run(&self) -> Result<Fetched> {
        let mut format = Kind::Sha1;
        if let Some(repository) = self.cache.open().filter(|_| !self.cache.is_worn()) {
            match self.receive(&repository.to_thread_local()) {
                Ok(Received::Commit(commit)) => return Ok(Fetched { repository, commit }),
                Ok(Received::OtherFormat(other)) => format = other,
                Err(Failed::Asking(error)) => return Err(error),
                Err(Failed::Receiving(error)) if self.is_interrupted() => return Err(error),
                // Perhaps something that the cache should have is not there. All of it needs nothing.
                Err(Failed::Receiving(error)) => {
                    tracing::warn!(%error, "fetching into the cache failed; it is made anew");
                }
            }
        }
        self.anew(format)
    }

    fn anew(&self, format: Kind) -> Result<Fetched> {
        let commit = match self.receive_fresh(format)? {
            Received::Commit(commit) => commit,
            Received::OtherFormat(other) => match self.receive_fresh(other)? {
                Received::Commit(commit) => commit,
                Received::OtherFormat(_) => {
                    return Err(self.unreachable("it does not say what its ids are".to_owned()));
                }
            },
        };
        Ok(Fetched { repository: self.cache.put_in_place()?, commit })
    }

    fn receive_fresh(&self, format: Kind) -> Result<Received> {
        let fresh = self.cache.fresh(format)?;
        self.receive(&fresh.to_thread_local()).map_err(|failed| match failed {
            Failed::Asking(error) | Failed::Receiving(error) => error,
        })
    }

    fn receive(&self, repository: &gix::Repository) -> Result<Received, Failed> {
        let wanted = match &self.options.branch {
            Some(branch) => full_name(branch).map_err(Failed::Asking)?,
            None => HEAD.to_owned(),
        };
        let remote = self.remote(repository, &wanted).map_err(Failed::Asking)?;
        let prepared = self
            .connect(&remote)
            .map_err(Failed::Asking)?
            .prepare_fetch(Discard, ref_map::Options::default())
            .map_err(|error| Failed::Asking(self.refusal(&error)))?;
        let map = prepared.ref_map();
        if map.object_hash != repository.object_hash() {
            return Ok(Received::OtherFormat(map.object_hash));
        }
        let commit = self.tip(map, repository).map_err(Failed::Asking)?;
        if repository
            .find_reference(TIP)
            .is_ok_and(|tip| tip.try_id().is_some_and(|id| id == commit))
        {
            return Ok(Received::Commit(commit));
        }
        let bytes_max = self.options.limits.fetch_bytes_max;
        let meter = Meter::new(bytes_max, self.interrupt.clone());
        prepared
            .with_shallow(Shallow::DepthAtRemote(NonZeroU32::MIN))
            .receive(meter.clone(), self.interrupt.flag())
            .map_err(|error| {
                Failed::Receiving(if meter.is_over() {
                    Error::TooLarge { repository: self.options.repository.clone(), bytes_max }
                } else {
                    self.unreachable(told(&error))
                })
            })?;
        match repository.find_object(commit) {
            Ok(object) if object.kind == gix::objs::Kind::Commit => Ok(Received::Commit(commit)),
            Ok(object) => Err(Failed::Receiving(
                self.unreachable(format!("its branch is no commit but a {}", object.kind)),
            )),
            Err(_) => Err(Failed::Receiving(
                self.unreachable(format!("it did not send the commit {commit} that it named")),
            )),
        }
    }

    /// The other side, as one that is asked for one branch only.
    fn remote<'r>(&self, repository: &'r gix::Repository, wanted: &str) -> Result<Remote<'r>> {
        let refused = |error: gix::Error| self.refusal(&error);
        repository
            .remote_at_without_url_rewrite(self.url.clone())
            .map_err(refused)?
            .with_fetch_tags(Tags::None)
            .with_refspecs([format!("+{wanted}:{TIP}").as_str()], Direction::Fetch)
            .map_err(refused)
    }

    fn connect<'s, 'r, 'repo>(
        &'s self,
        remote: &'r Remote<'repo>,
    ) -> Result<Connection<'r, 's, 'repo, Box<dyn Transport + Send>>> {
        let broken = |reason: String| self.unreachable(reason);
        let settings = transport::settings(self.url, self.options).map_err(broken)?;
        let transport = transport::open(self.url, self.options, self.interrupt).map_err(broken)?;
        let connection = remote
            .to_connection_with_transport(transport)
            .with_credentials(|action| self.credentials(action));
        Ok(connection.with_transport_options(match settings {
            Some(settings) => Box::new(settings),
            None => Box::new(()),
        }))
    }

    /// The commit that the other side says is the newest.
    fn tip(&self, map: &RefMap, repository: &gix::Repository) -> Result<ObjectId> {
        let empty = || Error::Empty { repository: self.options.repository.clone() };
        match (named(map), &self.options.branch) {
            (Some(commit), _) => Ok(commit),
            (None, None) => Err(empty()),
            // It was asked for one branch only, and so told nothing of others.
            (None, Some(branch)) => {
                let remote = self.remote(repository, HEAD)?;
                let asked = self.connect(&remote)?.ref_map(Discard, ref_map::Options::default());
                let (map, _) = asked.map_err(|error| self.refusal(&error))?;
                Err(named(&map).map_or_else(empty, |_| no_branch(self.options, branch)))
            }
        }
    }

    /// Who we say we are, to the host that the address names and to no other: a redirect may lead
    /// anywhere.
    fn credentials(&self, action: Action) -> gix::Result<Option<Outcome>> {
        let Action::Get(context) = action else { return Ok(None) };
        let Credentials::Account(account) = &self.options.credentials else {
            return Err(unauthenticated("it wants credentials, and there are none"));
        };
        let asks = context.url.as_ref().and_then(|url| gix::url::parse(url).ok());
        let ours = |url: &gix::Url| {
            url.scheme == self.url.scheme
                && url.host() == self.url.host()
                && url.port_or_default() == self.url.port_or_default()
        };
        if !asks.as_ref().is_some_and(ours) {
            return Err(unauthenticated("another host wants credentials, which are not for it"));
        }
        let Account { username, password } = account().map_err(unauthenticated)?;
        let identity =
            gix::sec::identity::Account { username, password, oauth_refresh_token: None };
        Ok(Some(Outcome { identity, next: context.into() }))
    }

    /// What it means that the other side did not let us ask.
    fn refusal(&self, error: &gix::Error) -> Error {
        let (repository, reason) = (self.options.repository.clone(), told(error));
        let says = |text: &str| reason.contains(text);
        if self.is_interrupted() {
            return Error::Cancelled;
        }
        if error.is_unauthenticated()
            || error.is_permission_denied()
            || says("HTTP status 401")
            || says("HTTP status 403")
            || says("Permission denied (")
        {
            Error::Refused { repository, reason }
        } else if says("HTTP status 404")
            || says("repository not exported")
            || says("does not appear to be a git repository")
            || says("no such repository")
        {
            Error::NoRepository { repository, reason }
        } else {
            Error::Unreachable { repository, reason }
        }
    }

    fn unreachable(&self, reason: String) -> Error {
        if self.is_interrupted() {
            return Error::Cancelled;
        }
        Error::Unreachable { repository: self.options.repository.clone(), reason }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.flag().load(std::sync::atomic::Ordering::SeqCst)
    }
}

/// The commit of the one branch that was asked for, if there is one.
fn named(map: &RefMap) -> Option<ObjectId> {
    map.mappings.first()?.remote.peeled_id().map(ToOwned::to_owned)
}

fn unauthenticated(reason: impl Into<String>) -> gix::Error {
    gix::Error::from_error(gix::error::unauthenticated(reason.into()))
}
