//! What a key of the store stands for.

use data_encoding::BASE64URL;
use keyward_engine::{Error, ErrorKind, Json};
use keyward_key::{Key, Prefix};

use super::DocumentLayout;
use crate::places;

pub(super) const ENTRIES: [&str; 1] = ["agents"];
pub(super) const ROWS: [&str; 3] = ["system", "access", "agents"];

/// The user, the namespace and the key of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub user: String,
    pub namespace: String,
    pub key: String,
}

/// Which part of a document a key stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// The entry.
    Entry,
    /// Who accessed it.
    Access,
}

/// What a key of the store stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A part of a document.
    Document(Part, Address),
    /// Something that is always there and needs no document. Its version is always the same, and nobody checks it.
    Fixed(Json),
    /// Nothing.
    Nothing,
}

impl Part {
    /// Below what its keys lie.
    pub fn prefix(self) -> Prefix {
        match self {
            Self::Entry => Prefix::from_segments(ENTRIES),
            Self::Access => Prefix::from_segments(ROWS),
        }
    }
}

impl Address {
    /// The entry that the segments of a key name, if they do.
    fn read<'k>(mut segments: impl Iterator<Item = std::borrow::Cow<'k, str>>) -> Option<Self> {
        let mut next = || segments.next().filter(|it| !it.is_empty()).map(|it| it.into_owned());
        let address = Self { user: next()?, namespace: next()?, key: next()? };
        segments.next().is_none().then_some(address)
    }

    /// The entry of a document of this id, which a list found for a user and a namespace.
    pub fn of_id(id: &str, user: &str, namespace: &str) -> Option<Self> {
        let rest = id.strip_prefix(user)?.strip_prefix(':')?;
        let encoded = rest.strip_prefix(namespace)?.strip_prefix(':')?;
        let key = String::from_utf8(BASE64URL.decode(encoded.as_bytes()).ok()?).ok()?;
        let is_whole = !key.is_empty() && !user.is_empty() && !namespace.is_empty();
        let (user, namespace) = (user.to_owned(), namespace.to_owned());
        is_whole.then_some(Self { user, namespace, key })
    }

    /// The document's id: as the original program makes it, with nothing escaped.
    pub fn id(&self) -> String {
        format!("{}:{}:{}", self.user, self.namespace, BASE64URL.encode(self.key.as_bytes()))
    }

    /// The key of a part of the document.
    pub fn to_key(&self, part: Part) -> Option<Key> {
        let entry = Prefix::from_segments(ENTRIES).child(&self.user).child(&self.namespace);
        let entry = entry.child(&self.key).to_key()?;
        Some(match part {
            Part::Entry => entry,
            Part::Access => places::access(&entry),
        })
    }

    /// Refuses a user whose id has a colon: `a:b` in `default` would have the ids of `a` in `b:default`.
    pub fn admit_write(&self) -> Result<(), Error> {
        if !self.user.contains(':') {
            return Ok(());
        }
        let message = format!(
            "the user id {:?} has a colon; layout=document cannot write for it, since its document ids could be \
             those of another user",
            self.user
        );
        let hint = "Use a user id without a colon, or a store without layout=document.";
        Err(Error::new(ErrorKind::Invalid, message).advise(hint))
    }
}

impl DocumentLayout {
    pub(super) fn place(&self, key: &Key) -> Place {
        let mut segments = key.segments();
        let address = match segments.next().as_deref() {
            Some("agents") => Address::read(segments).map(|it| (Part::Entry, it)),
            Some("system") => match segments.next().as_deref() {
                Some("access") if segments.next_is("agents") => {
                    Address::read(segments).map(|it| (Part::Access, it))
                }
                // There are no indexes, and none can be added.
                Some("catalog") if segments.next().is_none() => {
                    return Place::Fixed(Json::from_stored(r#"{"indexes":{}}"#));
                }
                Some("cursor-secret") if segments.next().is_none() => {
                    return Place::Fixed(self.cursor_secret.clone());
                }
                Some("agent-log") if segments.next().is_none() => {
                    return Place::Fixed(Json::from_stored(places::NO_LOG));
                }
                Some("agent-skipped") => {
                    let of: Vec<_> = segments.collect();
                    return match &of[..] {
                        [user] => self.skipped(user, None),
                        [user, namespace] => self.skipped(user, Some(namespace)),
                        _ => Place::Nothing,
                    };
                }
                Some("agent-settings") if segments.by_ref().count() == 2 => {
                    return Place::Fixed(Json::from_stored(places::NO_SETTINGS));
                }
                _ => None,
            },
            _ => None,
        };
        address.map_or(Place::Nothing, |(part, address)| Place::Document(part, address))
    }

    /// Which documents lists left out so far.
    fn skipped(&self, user: &str, namespace: Option<&str>) -> Place {
        let skipped = Json::from_value(&self.skips.of(user, namespace));
        skipped.map_or(Place::Nothing, Place::Fixed)
    }
}

/// The error of a key that cannot be written.
pub(super) fn no_place(key: &Key) -> Error {
    let mut segments = key.segments();
    let what = match (segments.next().as_deref(), segments.next().as_deref()) {
        (Some("system"), Some("agent-log")) => "it keeps no logs of runs".to_owned(),
        (Some("system"), Some("agent-settings")) => "it keeps no settings of namespaces".to_owned(),
        (Some("system"), Some("catalog")) => "it has no indexes besides the database's".to_owned(),
        _ => format!("{key} has no place in it"),
    };
    let message = format!("layout=document holds agent entries only; {what}");
    Error::new(ErrorKind::Unsupported, message)
        .advise("Use a store without layout=document for this; nothing was done.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_for_its_user_and_namespace_only() {
        let address = |user: &str, namespace: &str, key: &str| Address {
            user: user.to_owned(),
            namespace: namespace.to_owned(),
            key: key.to_owned(),
        };
        let main = address("user_123", "files:my-repo", "src/main.py");
        assert_eq!(main.id(), "user_123:files:my-repo:c3JjL21haW4ucHk=");
        assert_eq!(Address::of_id(&main.id(), "user_123", "files:my-repo"), Some(main.clone()));
        assert_eq!(Address::of_id(&main.id(), "user_123", "files"), None);
        // The same id, read for two users.
        let (one, other) = (address("a:b", "default", "k"), address("a", "b:default", "k"));
        assert_eq!(one.id(), other.id());
        assert_eq!(Address::of_id(&one.id(), "a:b", "default"), Some(one));
        assert_eq!(Address::of_id(&other.id(), "a", "b:default"), Some(other));
        for id in ["u:n:", "u:n:aw", "u:n:a b", "u:n:_w==", "u:n", "u:nn:aw=="] {
            assert_eq!(Address::of_id(id, "u", "n"), None, "{id}");
        }
    }
}
