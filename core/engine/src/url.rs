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
    /// Options that exist besides those that the engine takes itself.
    others: Vec<&'static str>,
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

    /// Takes an option out whose value is percent-encoded where it must be, such as a URL.
    pub fn take_decoded(&mut self, option: &str) -> Result<Option<String>> {
        let Some(value) = self.options.remove(option) else { return Ok(None) };
        match percent_decoded(&value) {
            Some(decoded) => Ok(Some(decoded)),
            None => Err(Error::invalid(format!(
                "the value of the option {option:?} is not percent-encoded UTF-8; a percent sign is written %25"
            ))),
        }
    }

    /// Names options that were taken by somebody else, so that [`StoreUrl::finish`] tells of them too.
    pub fn also_takes(&mut self, options: &[&'static str]) {
        self.others.extend_from_slice(options);
    }

    /// Refuses options that nobody took, naming those that exist.
    pub fn finish(self, known: &[&str]) -> Result<()> {
        let Some(unknown) = self.options.keys().next() else {
            return Ok(());
        };
        let known = match [known, &self.others].concat() {
            known if known.is_empty() => "it takes none".to_owned(),
            known => format!("it takes {}", known.join(", ")),
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
        Ok(Self { engine: engine.to_owned(), place: place.to_owned(), options, others: Vec::new() })
    }
}

/// As it was given, but without credentials: it may stand in a message or a log.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.without_secrets(false).unwrap_or_else(|| self.text()))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

/// What marks the name of an option with a credential. The place of a file with one is not secret.
const SECRET_WORDS: [&str; 4] = ["password", "secret", "token", "key"];

impl StoreUrl {
    fn text(&self) -> String {
        let options = self.options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        written(&self.engine, &self.place, options)
    }

    /// The URL without its credentials, if it has some. The value of an option may be a URL with credentials of its
    /// own, such as a coordinator's; those in a URL inside of that one are not looked for.
    fn without_secrets(&self, is_inside: bool) -> Option<String> {
        let place = without_password(&self.place);
        let mut has_secrets = matches!(place, Cow::Owned(_));
        let options: Vec<(&str, Cow<'_, str>)> = self
            .options
            .iter()
            .map(|(name, value)| {
                let shown = match is_secret(name) || is_inside && value.contains('@') {
                    true => Some("…".to_owned()),
                    false if is_inside => None,
                    false => inner_without_secrets(value),
                };
                has_secrets |= shown.is_some();
                (name.as_str(), shown.map_or(Cow::Borrowed(value.as_str()), Cow::Owned))
            })
            .collect();
        let options = options.iter().map(|(name, value)| (*name, &**value));
        has_secrets.then(|| written(&self.engine, &place, options))
    }
}

fn written<'o>(
    engine: &str,
    place: &str,
    options: impl Iterator<Item = (&'o str, &'o str)>,
) -> String {
    let mut text = format!("{engine}:{place}");
    for (n, (name, value)) in options.enumerate() {
        text.push(if n == 0 { '?' } else { '&' });
        text.extend([name, "=", value]);
    }
    text
}

fn is_secret(option: &str) -> bool {
    SECRET_WORDS.iter().any(|word| option.contains(word)) && !option.ends_with("_file")
}

/// A URL in an option, without its credentials, if it is one and has some.
fn inner_without_secrets(value: &str) -> Option<String> {
    let url = percent_decoded(value)?.parse::<StoreUrl>().ok()?;
    let shown = url.without_secrets(true)?;
    Some(shown.replace('%', "%25").replace('&', "%26"))
}

/// `//user:secret@host/db` without the secret.
fn without_password(place: &str) -> Cow<'_, str> {
    let Some(rest) = place.strip_prefix("//") else { return Cow::Borrowed(place) };
    let authority = rest.split('/').next().unwrap_or(rest);
    // A slash that should be encoded ends the authority too early: then everything up to the last `@` is the login.
    let login =
        authority.rsplit_once('@').or_else(|| rest.rsplit_once('@')).map(|(login, _)| login);
    let secret =
        login.and_then(|login| Some((2 + login.split_once(':')?.0.len(), 2 + login.len())));
    match secret {
        None => Cow::Borrowed(place),
        Some((start, end)) => Cow::Owned(format!("{}:…{}", &place[..start], &place[end..])),
    }
}

/// The text that a percent-encoded one stands for, if it stands for one.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok().filter(|it| !it.contains('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}
