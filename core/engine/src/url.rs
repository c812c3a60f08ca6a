use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// A store's URL: `ENGINE:PLACE?OPTION=VALUE&…`.
///
/// The place is everything up to the first `?`, as it stands: a path needs no escaping (but cannot
/// contain `?`).
///
/// ```
/// use keyward_engine::StoreUrl;
///
/// let mut url: StoreUrl = "embedded:./data?durability=relaxed".parse()?;
/// assert_eq!((url.engine(), url.place()), ("embedded", "./data"));
/// assert_eq!(url.take("durability").as_deref(), Some("relaxed"));
/// url.finish(&["durability"])?;
/// # Ok::<(), keyward_engine::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    engine: String,
    place: String,
    options: BTreeMap<String, String>,
}

impl StoreUrl {
    /// The engine's name.
    pub fn engine(&self) -> &str {
        &self.engine
    }

    /// What stands between the engine and the options.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Takes an option out.
    pub fn take(&mut self, option: &str) -> Option<String> {
        self.options.remove(option)
    }

    /// Refuses options that nobody took, naming those that exist.
    pub fn finish(self, known: &[&str]) -> Result<()> {
        let Some(unknown) = self.options.keys().next() else {
            return Ok(());
        };
        let known = if known.is_empty() {
            "it takes none".to_owned()
        } else {
            format!("it takes {}", known.join(", "))
        };
        Err(Error::invalid(format!(
            "the {} engine has no option {unknown:?}; {known}",
            self.engine
        )))
    }
}

impl FromStr for StoreUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((engine, rest)) = text.split_once(':') else {
            return Err(Error::invalid(format!(
                "{text:?} is not a store URL; write for example embedded:./data or memory:"
            )));
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut options = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(Error::invalid(format!(
                    "the option {pair:?} of the store URL needs a value, as in {pair}=VALUE"
                )));
            };
            if options.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(Error::invalid(format!(
                    "the option {name:?} stands twice in the store URL"
                )));
            }
        }
        Ok(Self { engine: engine.to_owned(), place: place.to_owned(), options })
    }
}

/// As it was given, but without a password: it may stand in a message or a log.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.engine, without_password(&self.place))?;
        for (n, (name, value)) in self.options.iter().enumerate() {
            let value = if name.contains("password") { "…" } else { value };
            write!(f, "{}{name}={value}", if n == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

/// `//user:secret@host/db` without the secret.
fn without_password(place: &str) -> Cow<'_, str> {
    let authority = place.strip_prefix("//").map(|rest| rest.split('/').next().unwrap_or(rest));
    let secret = authority.and_then(|authority| {
        let (login, _) = authority.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some((2 + user.len(), 2 + login.len()))
    });
    match secret {
        None => Cow::Borrowed(place),
        Some((start, end)) => Cow::Owned(format!("{}:…{}", &place[..start], &place[end..])),
    }
}
