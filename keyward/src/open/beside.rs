//! Places in a file, which are relative to the folder of that file.

use std::path::Path;

use keyward_engine::{Error, ErrorKind, Result, StoreUrl};

use super::coordinator::OPTION as COORDINATOR;

/// A store's URL as it stands in a file of `folder`: the place of an embedded store is relative to
/// that folder, so that the file means the same from everywhere. So is that of an embedded coordinator.
///
/// ```
/// use std::path::Path;
///
/// let url = keyward::url_beside(Path::new("/srv/app"), "embedded:data?durability=relaxed")?;
/// assert_eq!(url, "embedded:/srv/app/data?durability=relaxed");
/// # Ok::<(), keyward::Error>(())
/// ```
pub fn url_beside(folder: &Path, url: &str) -> Result<String> {
    let Some(rest) = url.strip_prefix("embedded:") else {
        return coordinator_beside(folder, url);
    };
    let (place, options) = match rest.find('?') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    if place.is_empty() || Path::new(place).is_absolute() || folder == Path::new("") {
        return Ok(url.to_owned());
    }
    let place = folder.join(place);
    match place.to_str().filter(|place| !place.contains('?')) {
        Some(place) => Ok(format!("embedded:{place}{options}")),
        None => {
            let place = place.display();
            let reason = "its path must be UTF-8 and without a question mark";
            let message = format!("a store cannot be at {place}: {reason}");
            Err(Error::new(ErrorKind::Invalid, message))
        }
    }
}

/// A store's URL with a coordinator.
pub(crate) fn with_coordinator(url: &str, coordinator: &str) -> String {
    let mark = if url.contains('?') { '&' } else { '?' };
    let coordinator = coordinator.replace('%', "%25").replace('&', "%26");
    format!("{url}{mark}{COORDINATOR}={coordinator}")
}

fn coordinator_beside(folder: &Path, url: &str) -> Result<String> {
    let named = url.parse::<StoreUrl>().ok().map(|mut url| url.take_decoded(COORDINATOR));
    let (Some(Ok(Some(named))), Some((place, options))) = (named, url.split_once('?')) else {
        return Ok(url.to_owned());
    };
    let is_coordinator =
        |option: &&str| option.split_once('=').is_some_and(|(name, _)| name == COORDINATOR);
    let others: Vec<&str> = options.split('&').filter(|option| !is_coordinator(option)).collect();
    let rest = match others.join("&") {
        others if others.is_empty() => place.to_owned(),
        others => format!("{place}?{others}"),
    };
    Ok(with_coordinator(&rest, &url_beside(folder, &named)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_place_is_relative_to_the_folder_of_the_file() {
        let beside = |folder: &str, url| url_beside(Path::new(folder), url).unwrap();
        let relaxed = "embedded:./data?durability=relaxed";
        assert_eq!(beside("/etc/kw", relaxed), "embedded:/etc/kw/./data?durability=relaxed");
        assert_eq!(beside("", relaxed), relaxed);
        assert_eq!(beside("up", "embedded:data"), "embedded:up/data");
        for url in ["embedded:/var/data", "memory:", "no url"] {
            assert_eq!(beside("/etc/kw", url), url);
        }
    }

    #[test]
    fn so_is_the_place_of_a_coordinator() {
        let beside = |url| url_beside(Path::new("/etc/k&w"), url).unwrap();
        for (url, is) in [
            (
                "cloudflare-kv://a/n?coordinator=embedded:./c",
                "?coordinator=embedded:/etc/k%26w/./c",
            ),
            (
                "cloudflare-kv://a/n?coordinator=embedded:./c%25%26?durability=relaxed&keep=job",
                "?keep=job&coordinator=embedded:/etc/k%26w/./c%25%26?durability=relaxed",
            ),
            (
                "cloudflare-kv://a/n?keep=job&coordinator=postgres://h/d?a=1%26b=2",
                "?keep=job&coordinator=postgres://h/d?a=1%26b=2",
            ),
        ] {
            assert_eq!(beside(url), format!("cloudflare-kv://a/n{is}"));
        }
        // What cannot be decoded is told when the store is opened.
        let wrong = "cloudflare-kv://a/n?coordinator=%zz";
        assert_eq!(beside(wrong), wrong);
    }

    #[test]
    fn a_folder_that_no_url_can_name_is_refused() {
        for url in ["embedded:data", "cloudflare-kv://a/n?coordinator=embedded:data"] {
            let error = url_beside(Path::new("/what?"), url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
    }
}
