//! The addresses of resources.
//!
//! `keyward://schema`, `keyward://{store}/spaces/{space}`, `keyward://{store}/spaces/{space}/records`
//! and `keyward://{store}/spaces/{space}/records/{key}`; `keyward://agents/namespaces/{namespace}` and
//! `keyward://agents/namespaces/{namespace}/entries/{key}`; `keyward://registries/{registry}/policies/{policy}`.
//! Each part is percent-encoded.

use data_encoding::HEXLOWER_PERMISSIVE;
use keyward::Key;

use keyward_operations::location::path_segment;

const SCHEME: &str = "keyward://";
/// The longest address that is looked at.
const URI_BYTES_MAX: usize = 16 * 1024;

/// What an address names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// What is declared, as a whole.
    Schema,
    /// What is declared about a space.
    Space { store: String, space: String },
    /// The keys of a space's records.
    Records { store: String, space: String },
    /// A record.
    Record { store: String, space: String, key: Key },
    /// The keys of what agents keep for the caller in a namespace.
    Namespace { namespace: String },
    /// An entry that agents keep for the caller.
    Entry { namespace: String, key: String },
    /// The content of a registry's policy.
    Policy { registry: String, policy: String },
}

impl Address {
    pub fn parse(uri: &str) -> Option<Self> {
        if uri.len() > URI_BYTES_MAX {
            return None;
        }
        let parts: Vec<&str> = uri.strip_prefix(SCHEME)?.split('/').collect();
        let text = |part: &str| decoded(part).filter(|text| !text.is_empty());
        match parts.as_slice() {
            ["schema"] => Some(Self::Schema),
            ["agents", "namespaces", namespace] => {
                Some(Self::Namespace { namespace: text(namespace)? })
            }
            ["agents", "namespaces", namespace, "entries", key] => {
                Some(Self::Entry { namespace: text(namespace)?, key: text(key)? })
            }
            ["registries", registry, "policies", policy] => {
                Some(Self::Policy { registry: text(registry)?, policy: text(policy)? })
            }
            [store, "spaces", space] => {
                Some(Self::Space { store: text(store)?, space: text(space)? })
            }
            [store, "spaces", space, "records"] => {
                Some(Self::Records { store: text(store)?, space: text(space)? })
            }
            [store, "spaces", space, "records", key] => {
                let key = Key::parse(&decoded(key)?).ok()?;
                Some(Self::Record { store: text(store)?, space: text(space)?, key })
            }
            _ => None,
        }
    }
}

/// The address of a space's declaration.
pub(super) fn space(store: &str, space: &str) -> String {
    format!("{SCHEME}{}/spaces/{}", path_segment(store), path_segment(space))
}

/// The address of a space's keys.
pub(super) fn records(store: &str, space: &str) -> String {
    format!("{}/records", self::space(store, space))
}

/// The address of a namespace's keys.
pub(super) fn namespace(namespace: &str) -> String {
    format!("{SCHEME}agents/namespaces/{}", path_segment(namespace))
}

fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'%' => {
                let (hex, after) = after.split_at_checked(2)?;
                bytes.extend(HEXLOWER_PERMISSIVE.decode(hex).ok()?);
                after
            }
            byte => {
                bytes.push(*byte);
                after
            }
        };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        let key = Key::from_segments(["user", "ada:7", "notes", "a/b c%é"]).unwrap();
        let uri = format!("{}/{}", records("main", "no/tes"), path_segment(&key.to_string()));
        assert_eq!(
            Address::parse(&uri),
            Some(Address::Record { store: "main".into(), space: "no/tes".into(), key })
        );
        assert_eq!(Address::parse("keyward://schema"), Some(Address::Schema));
        let namespace = "files:apache/repo".to_owned();
        let entries = self::namespace(&namespace);
        assert_eq!(
            Address::parse(&format!("{entries}/entries/a%2Fb")),
            Some(Address::Entry { namespace: namespace.clone(), key: "a/b".to_owned() })
        );
        assert_eq!(Address::parse(&entries), Some(Address::Namespace { namespace }));
        let (registry, policy) = ("p".to_owned(), "학칙".to_owned());
        assert_eq!(
            Address::parse("keyward://registries/p/policies/%ED%95%99%EC%B9%99"),
            Some(Address::Policy { registry, policy })
        );
        let (store, space) = ("schema".to_owned(), "notes".to_owned());
        assert_eq!(
            Address::parse("keyward://schema/spaces/notes/records"),
            Some(Address::Records { store, space })
        );
    }

    #[test]
    fn what_is_no_address_is_none() {
        for uri in [
            "",
            "keyward://",
            "http://schema",
            "keyward://main",
            "keyward://main/spaces",
            "keyward://main/spaces/",
            "keyward:///spaces/notes",
            "keyward://main/spaces/notes/records/",
            "keyward://main/spaces/notes/records/a%2",
            "keyward://main/spaces/notes/records/a%zz",
            "keyward://main/spaces/notes/records/%ff",
            "keyward://main/spaces/notes/records/a/b",
        ] {
            assert_eq!(Address::parse(uri), None, "{uri}");
        }
    }
}
