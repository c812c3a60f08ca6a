use std::fmt;

use data_encoding::BASE64URL;

/// What makes an entry's `_id`: the user, the namespace and the key, as one text
/// `{user}:{namespace}:{key in URL-safe base64 with padding}`.
///
/// A namespace may contain colons; base64 has none, and a colon or percent sign in a user's id is
/// written `%3A` or `%25`. So an id is taken apart from both ends, and no two entries have the same:
/// user `a:b` in `default` is `a%3Ab:default:…`, user `a` in `b:default` is `a:b:default:…`.
///
/// ```
/// use keyward_agents::DocumentId;
///
/// let id = DocumentId::new("user_123", "files:my-repo", "src/main.py");
/// assert_eq!(id.compose(), "user_123:files:my-repo:c3JjL21haW4ucHk=");
/// assert_eq!(DocumentId::parse(&id.compose()).unwrap(), id);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocumentId {
    /// The user whose entry it is.
    pub user: String,
    /// The namespace.
    pub namespace: String,
    /// The key.
    pub key: String,
}

/// A text that is no document id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no document id: {reason}")]
pub struct DocumentIdError {
    text: String,
    reason: &'static str,
}

impl DocumentId {
    /// The id of an entry.
    pub fn new(
        user: impl Into<String>,
        namespace: impl Into<String>,
        key: impl Into<String>,
    ) -> Self {
        Self { user: user.into(), namespace: namespace.into(), key: key.into() }
    }

    /// The text.
    pub fn compose(&self) -> String {
        let user = self.user.replace('%', "%25").replace(':', "%3A");
        format!("{user}:{}:{}", self.namespace, encode(&self.key))
    }

    /// The text as programs write it that do not escape the user's id. It says what is meant only
    /// together with the user's id.
    pub(crate) fn compose_unescaped(&self) -> String {
        format!("{}:{}:{}", self.user, self.namespace, encode(&self.key))
    }

    /// Takes a text apart. Each entry has exactly one text; any other is refused.
    pub fn parse(text: &str) -> Result<Self, DocumentIdError> {
        let wrong = |reason| DocumentIdError { text: text.to_owned(), reason };
        let parts = text.split_once(':').and_then(|(user, rest)| {
            let (namespace, key) = rest.rsplit_once(':')?;
            Some((user, namespace, key))
        });
        let Some((user, namespace, key)) = parts else {
            return Err(wrong("it is {user}:{namespace}:{key in base64}"));
        };
        let user = unescaped(user)
            .ok_or_else(|| wrong("a percent sign in the user's id is written %25, a colon %3A"))?;
        let key = BASE64URL.decode(key.as_bytes()).ok().and_then(|key| String::from_utf8(key).ok());
        let key = key.ok_or_else(|| {
            wrong("after the last colon stands the key in URL-safe base64 with padding")
        })?;
        if user.is_empty() || namespace.is_empty() || key.is_empty() {
            return Err(wrong("user, namespace and key cannot be empty"));
        }
        Ok(Self { user, namespace: namespace.to_owned(), key })
    }
}

impl fmt::Display for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.compose())
    }
}

fn encode(key: &str) -> String {
    BASE64URL.encode(key.as_bytes())
}

fn unescaped(user: &str) -> Option<String> {
    let mut parts = user.split('%');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        let (escaped, rest) = part.split_at_checked(2)?;
        plain.push(match escaped {
            "25" => '%',
            "3A" => ':',
            _ => return None,
        });
        plain.push_str(rest);
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn users_with_colons_are_apart_from_namespaces_with_colons() {
        let one = DocumentId::new("a:b", "default", "k");
        let other = DocumentId::new("a", "b:default", "k");
        assert_eq!(one.compose(), "a%3Ab:default:aw==");
        assert_eq!(other.compose(), "a:b:default:aw==");
        assert_eq!(DocumentId::parse("a:b:default:aw==").unwrap(), other);
    }

    #[test]
    fn a_text_that_no_entry_has_is_refused() {
        for text in [
            "",
            "a",
            "a:b",
            ":b:aw==",
            "a::aw==",
            "a:b:",
            "a:b:aw",
            "a:b:aw=",
            "a:b:a+==",
            "a%41:b:aw==",
            "a%:b:aw==",
            "a%3a:b:aw==",
            "a:b:/w==",
            "a:b:_w==",
        ] {
            assert!(DocumentId::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_composed_id_is_taken_apart_again(
            user in ".{1,8}", namespace in "[a:/%é]{1,6}", key in ".{1,8}",
        ) {
            let id = DocumentId::new(user, namespace, key);
            prop_assert_eq!(DocumentId::parse(&id.compose()).unwrap(), id);
        }

        #[test]
        fn a_text_that_is_taken_apart_is_composed_again(text in "[ab%235A:=wcQ]{0,16}") {
            if let Ok(id) = DocumentId::parse(&text) {
                prop_assert_eq!(id.compose(), text);
            }
        }
    }
}
