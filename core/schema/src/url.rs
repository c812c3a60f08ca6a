//! The part of a store's URL that must not be shown.

use std::borrow::Cow;
use std::ops::Range;

/// Where the password of `engine://user:password@host` stands.
pub(crate) fn password(url: &str) -> Option<Range<usize>> {
    let start = url.find("://")? + 3;
    let authority = url[start..].split(['/', '?']).next()?;
    let (login, _) = authority.rsplit_once('@')?;
    let (user, password) = login.split_once(':')?;
    let start = start + user.len() + 1;
    Some(start..start + password.len()).filter(|at| !at.is_empty())
}

pub(crate) fn without_password(url: &str) -> Cow<'_, str> {
    match password(url) {
        None => Cow::Borrowed(url),
        Some(at) => Cow::Owned(format!("{}…{}", &url[..at.start], &url[at.end..])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("postgres://ada:s3cret@db/x", "postgres://ada:…@db/x"),
            ("postgres://ada:s:3@cret@db/x?a=b", "postgres://ada:…@db/x?a=b"),
            ("postgres://ada@db/x", "postgres://ada@db/x"),
            ("postgres://ada:@db/x", "postgres://ada:@db/x"),
            ("embedded:./a:b@c", "embedded:./a:b@c"),
            ("memory:", "memory:"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
