//! The text of an API key: made once, shown once.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE32_DNSSEC;

use super::keys::KeyError;

/// What every API key begins with, so that people and scanners of secrets know one when they see it.
pub const MARK: &str = "kw_";
const ID_BYTES: usize = 5;
const SECRET_BYTES: usize = 32;
/// The longest text that is looked at: `kw_`, 8 characters, `_`, 52 characters.
const TEXT_BYTES_MAX: usize = 64;

/// An API key as its holder has it: `kw_{id}_{secret}`. It is shown in no log: its `Debug` form has
/// the id only.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: String,
    id_end: usize,
}

impl Secret {
    /// A new one, from the system's randomness.
    pub fn generate() -> Result<Self, KeyError> {
        let (mut id, mut secret) = ([0; ID_BYTES], [0; SECRET_BYTES]);
        for bytes in [&mut id[..], &mut secret[..]] {
            getrandom::fill(bytes).map_err(|error| KeyError::NoRandomness(error.to_string()))?;
        }
        // Digits and lower-case letters only: nothing to escape in a URL, and no `_`.
        let id = BASE32_DNSSEC.encode(&id);
        let id_end = MARK.len() + id.len();
        Ok(Self { text: format!("{MARK}{id}_{}", BASE32_DNSSEC.encode(&secret)), id_end })
    }

    /// Takes a text for an API key, if it has the form of one.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (id, secret) = text.strip_prefix(MARK)?.split_once('_')?;
        let has_form = |part: &str, bytes: usize| {
            part.len() == BASE32_DNSSEC.encode_len(bytes)
                && part.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
        };
        let has_form = has_form(id, ID_BYTES) && has_form(secret, SECRET_BYTES);
        has_form.then(|| Self { text: text.to_owned(), id_end: MARK.len() + id.len() })
    }

    /// The part that is no secret.
    pub fn id(&self) -> &str {
        &self.text[MARK.len()..self.id_end]
    }

    /// The whole key: for the one who asked for it, and nobody else.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// What is kept of it. Passwords need a slow hash because they can be guessed; here are 256 bits
    /// of randomness, of which no number of guesses finds any, so that a fast one gives nothing away.
    /// The id is hashed along: a hash that is copied to another id opens nothing.
    pub fn hash(&self) -> blake3::Hash {
        blake3::hash(self.text.as_bytes())
    }
}

/// A text has not the form of an API key. It is not shown: it may be a secret all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an API key is kw_, 8 characters, _ and 52 characters, all of them digits or lower-case letters"
)]
pub struct BadSecret;

impl FromStr for Secret {
    type Err = BadSecret;

    /// Takes a text for an API key; white space around it does not belong to it.
    fn from_str(text: &str) -> Result<Self, BadSecret> {
        Self::parse(text.trim()).ok_or(BadSecret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({MARK}{}_…)", self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_and_shows_only_its_id() {
        let secret = Secret::generate().unwrap();
        assert_eq!(secret.reveal().len(), TEXT_BYTES_MAX);
        assert_eq!(Secret::parse(secret.reveal()), Some(secret.clone()));
        assert_eq!(format!("{secret:?}"), format!("Secret(kw_{}_…)", secret.id()));
        assert_ne!(Secret::generate().unwrap(), secret);
    }

    #[test]
    fn what_has_another_form_is_no_key() {
        let text = Secret::generate().unwrap().reveal().to_owned();
        for wrong in [
            String::new(),
            "kw_".to_owned(),
            "kw__".to_owned(),
            text.to_uppercase(),
            text.replacen("kw_", "kx_", 1),
            text[..text.len() - 1].to_owned(),
            format!("{text}0"),
            format!("{} ", &text[..text.len() - 1]),
            format!("{}_", &text[..text.len() - 1]),
            text.replacen('_', "-", 2),
        ] {
            assert_eq!(Secret::parse(&wrong), None, "{wrong}");
        }
    }
}
