//! The parts of a store's URL that must not be shown.

use std::borrow::Cow;
use std::ops::Range;

/// What marks the name of an option with a credential. The place of a file with one is not secret.
const SECRET_WORDS: [&str; 4] = ["password", "secret", "token", "key"];

/// Where the credentials of a URL stand: the password of `engine://user:password@host`, and options with one.
pub(crate) fn secrets(url: &str) -> Vec<Range<usize>> {
    let place = url.split('?').next().unwrap_or(url);
    let options = url[place.len()..].split_inclusive(['?', '&']).scan(place.len(), |at, part| {
        let start = *at;
        *at += part.len();
        Some((start, part.trim_end_matches(['?', '&'])))
    });
    let options = options.filter_map(|(start, option)| {
        let (name, value) = option.split_once('=')?;
        let start = start + name.len() + 1;
        is_secret(name, value).then_some(start..start + value.len())
    });
    password(place).into_iter().chain(options).filter(|at| !at.is_empty()).collect()
}

pub(crate) fn without_secrets(url: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(url);
    for at in secrets(url).into_iter().rev() {
        shown.to_mut().replace_range(at, "…");
    }
    shown
}

fn password(place: &str) -> Option<Range<usize>> {
    let start = place.find("://")? + 3;
    let rest = &place[start..];
    let authority = rest.split('/').next().unwrap_or(rest);
    // A slash that should be encoded ends the authority too early: then everything up to the last `@` is the login.
    let (login, _) = authority.rsplit_once('@').or_else(|| rest.rsplit_once('@'))?;
    let (user, password) = login.split_once(':')?;
    let start = start + user.len() + 1;
    Some(start..start + password.len())
}

/// Whether an option is a credential, or a URL that may have one.
fn is_secret(name: &str, value: &str) -> bool {
    let is_named = SECRET_WORDS.iter().any(|word| name.contains(word)) && !name.ends_with("_file");
    is_named || value.contains('@') || value.contains("%40")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_never_shown() {
        for (url, shown) in [
            ("postgres://ada:s3cret@db/x", "postgres://ada:…@db/x"),
            ("postgres://ada:s:3@cret@db/x?a=b", "postgres://ada:…@db/x?a=b"),
            ("couchdb://ada:s/cret@db/x", "couchdb://ada:…@db/x"),
            ("postgres://ada@db/x", "postgres://ada@db/x"),
            ("postgres://ada:@db/x", "postgres://ada:@db/x"),
            ("embedded:./a:b@c", "embedded:./a:b@c"),
            ("memory:", "memory:"),
            (
                "forge-kvs://app?a=b&token=t&token_file=f",
                "forge-kvs://app?a=b&token=…&token_file=f",
            ),
            ("x://h?at=postgres://a:b@h/d&c=d", "x://h?at=…&c=d"),
            ("x://ada:b@h?at=postgres%3A%2F%2Fa:b%40h", "x://ada:…@h?at=…"),
            ("x://h?endpoint=http://h:1", "x://h?endpoint=http://h:1"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
