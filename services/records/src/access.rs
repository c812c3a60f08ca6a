//! The owner rule: the one place that decides who reaches what. Everything that touches a key of a
//! space goes through here first.

use std::borrow::Cow;

use keyward_key::{Bindings, Key, KeyRange, Prefix};
use keyward_schema::{Index, Ownership, Scope, Share, Space};

use crate::{Caller, Error, Result};

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Read,
    Write,
}

/// A space as one caller reaches it.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub space: Space,
    pub caller: Caller,
    /// Where the owner stands in a key.
    owner_at: Option<usize>,
}

/// A key that the caller may touch. Only [`Access`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub key: Key,
    pub owner: Option<String>,
}

/// A part of a space that the caller may list.
pub(crate) struct Part {
    /// What may be read.
    pub range: KeyRange,
    /// Below what it stands.
    pub prefix: Prefix,
}

/// How much of a record a caller sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight<'s> {
    Whole,
    Shared(&'s Share),
    Nothing,
}

impl Access {
    pub fn new(space: Space, caller: Caller) -> Result<Self> {
        let owner_at = match space.ownership.owner() {
            // The owner is the first variable, so it follows the literals.
            Some(_) => Some(space.key.prefix(&Bindings::new())?.depth()),
            None => None,
        };
        Ok(Self { space, caller, owner_at })
    }

    /// Whether the space's records have owners.
    pub fn is_owned(&self) -> bool {
        self.owner_at.is_some()
    }

    /// A key of the space that the caller may read or write as its owner may: the whole record.
    pub fn admit(&self, key: &Key, act: Act) -> Result<Admitted> {
        let target = self.admit_shape(key, act)?;
        if let Some(owner) = &target.owner {
            self.admit_owner(owner)?;
        }
        Ok(target)
    }

    /// A key of the space that the caller may look up, and how much of the record they see: never
    /// [`Sight::Nothing`].
    pub fn admit_sight(&self, key: &Key) -> Result<(Admitted, Sight<'_>)> {
        let target = self.admit_shape(key, Act::Read)?;
        let sight = match self.shared_indexes().next() {
            Some(index) => self.sight(key, index.scope),
            None => self.sight(key, Scope::Owner),
        };
        if let (Sight::Nothing, Some(owner)) = (sight, &target.owner) {
            self.admit_owner(owner)?;
        }
        Ok((target, sight))
    }

    /// The indexes by which everybody finds records.
    pub fn shared_indexes(&self) -> impl Iterator<Item = &Index> {
        self.space.indexes.iter().filter(|index| index.scope == Scope::Shared)
    }

    fn admit_shape(&self, key: &Key, act: Act) -> Result<Admitted> {
        self.admit_role(act)?;
        if !self.space.key.matches(key) {
            return Err(Error::ForeignKey {
                space: self.space.name.clone(),
                key: key.clone(),
                pattern: self.space.key.to_string(),
            });
        }
        let owner = self.owner_of(key).map(Cow::into_owned);
        Ok(Admitted { key: key.clone(), owner })
    }

    /// The key for these values; the owner may be left out, since it is the caller. Where others see
    /// what is shared, anybody's record can be named: what is done with the key is admitted by itself.
    pub fn build(&self, values: Bindings) -> Result<Key> {
        let is_hybrid = matches!(self.space.ownership, Ownership::Hybrid { .. });
        let names_owner =
            self.space.ownership.owner().is_some_and(|owner| values.text(owner).is_some());
        let shows_others = is_hybrid && self.shared_indexes().next().is_some();
        let values = if shows_others && names_owner { values } else { self.with_owner(values)? };
        Ok(self.space.key.build(&values)?)
    }

    /// The part of the space that the caller may list, narrowed by these leading values.
    pub fn listed(&self, values: Bindings) -> Result<Part> {
        self.admit_role(Act::Read)?;
        let values = self.with_owner(values)?;
        let range = self.space.key.range(&values)?;
        Ok(Part { range, prefix: self.space.key.prefix(&values)? })
    }

    /// The same part, of which only the keys whose next segment starts with a text.
    pub fn starting(&self, values: Bindings, starts: Option<&str>) -> Result<Part> {
        let Part { range, prefix } = self.listed(values)?;
        let range = match starts {
            Some(starts) => KeyRange::segment_prefix(&prefix, starts),
            None => range,
        };
        Ok(Part { range, prefix })
    }

    fn with_owner(&self, values: Bindings) -> Result<Bindings> {
        let Some(variable) = self.space.ownership.owner() else {
            return Ok(values);
        };
        match (values.text(variable), self.caller.user_id()) {
            (Some(owner), _) => {
                self.admit_owner(owner)?;
                Ok(values)
            }
            (None, Some(user)) => Ok(values.with(variable, user)),
            (None, None) if self.caller.is_operator() => Ok(values),
            (None, None) => Err(self.forbidden(self.nobodys())),
        }
    }

    /// Whose entries of an index a query sees: the owner that stands before the values, if one does.
    pub fn index_owner(&self, scope: Scope, asked: Option<&str>) -> Result<Option<String>> {
        self.admit_role(Act::Read)?;
        if !self.is_owned() || scope == Scope::Shared {
            return match asked {
                Some(_) => Err(Error::BadQuery(
                    "this index holds everybody's entries: it cannot be asked for one owner's"
                        .into(),
                )),
                None => Ok(None),
            };
        }
        match (asked, self.caller.user_id()) {
            (Some(owner), _) => {
                self.admit_owner(owner)?;
                Ok(Some(owner.to_owned()))
            }
            (None, Some(user)) => Ok(Some(user.to_owned())),
            (None, None) if self.caller.is_operator() => Err(Error::BadQuery(
                "this index holds each owner's entries apart: say whose you mean".into(),
            )),
            (None, None) => Err(self.forbidden(self.nobodys())),
        }
    }

    /// How much of a record, found through an index of this scope, the caller sees.
    pub fn sight(&self, key: &Key, scope: Scope) -> Sight<'_> {
        if !self.is_owned() || self.caller.is_operator() || self.is_callers(key) {
            return Sight::Whole;
        }
        match (&self.space.ownership, scope) {
            (Ownership::Hybrid { share, .. }, Scope::Shared) => Sight::Shared(share),
            _ => Sight::Nothing,
        }
    }

    /// Whether an index has entries that the caller must not learn of.
    pub fn hides(&self, scope: Scope) -> bool {
        let users_only = matches!(self.space.ownership, Ownership::User { .. });
        users_only && scope == Scope::Shared && !self.caller.is_operator()
    }

    /// Whether the caller is the owner that a key of the space names.
    fn is_callers(&self, key: &Key) -> bool {
        match (self.owner_at, self.caller.user_id()) {
            (Some(at), Some(user)) => key.segments().past(at).next_is(user),
            _ => false,
        }
    }

    /// The owner that a key of the space names.
    pub fn owner_of<'k>(&'k self, key: &'k Key) -> Option<Cow<'k, str>> {
        if self.is_callers(key) {
            return self.caller.user_id().map(Cow::Borrowed);
        }
        key.segments().nth(self.owner_at?)
    }

    fn admit_role(&self, act: Act) -> Result<()> {
        let (roles, doing) = match act {
            Act::Read => (&self.space.read_roles, "reading"),
            Act::Write => (&self.space.write_roles, "writing"),
        };
        let has_one = roles.iter().any(|role| self.caller.has_role(role));
        if roles.is_empty() || has_one || self.caller.is_operator() {
            return Ok(());
        }
        Err(self.forbidden(format!("{doing} needs one of the roles {}", roles.join(", "))))
    }

    fn admit_owner(&self, owner: &str) -> Result<()> {
        if self.caller.is_operator() {
            return Ok(());
        }
        match self.caller.user_id() {
            Some(user) if user == owner => Ok(()),
            Some(_) => Err(self.forbidden("these records belong to another user".into())),
            None => Err(self.forbidden(self.nobodys())),
        }
    }

    fn nobodys(&self) -> String {
        "its records belong to users, and the caller is none".into()
    }

    fn forbidden(&self, rule: String) -> Error {
        Error::Forbidden { space: self.space.name.clone(), rule }
    }
}
