//! What a client keeps for the server between two requests, so that it cannot be changed.

use data_encoding::BASE64URL_NOPAD;
use keyward::Code;

use crate::problem::{Problem, Result};

/// Seals and opens. What another process sealed, it does not open.
pub(super) struct Seal([u8; 32]);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    pub fn new() -> Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| {
            Problem::new(Code::Internal, format!("there is no randomness: {error}"))
        })?;
        Ok(Self(key))
    }

    /// A text that opens to this one, for the same purpose.
    pub fn close(&self, purpose: &[&str], text: &str) -> String {
        let mac = BASE64URL_NOPAD.encode(self.mac(purpose, text).as_bytes());
        format!("{mac}.{text}")
    }

    /// What was sealed, unless somebody changed it or it is for something else.
    pub fn open<'s>(&self, purpose: &[&str], sealed: &'s str) -> Option<&'s str> {
        let (mac, text) = sealed.split_once('.')?;
        let given: [u8; 32] =
            BASE64URL_NOPAD.decode(mac.as_bytes()).ok().and_then(|mac| mac.try_into().ok())?;
        // Hashes are compared in constant time.
        (self.mac(purpose, text) == blake3::Hash::from_bytes(given)).then_some(text)
    }

    fn mac(&self, purpose: &[&str], text: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in purpose.iter().chain([&text]) {
            hasher.update(&part.len().to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_unchanged_and_for_its_purpose_only() {
        let seal = Seal::new().unwrap();
        let sealed = seal.close(&["delete", "ada"], "37");
        assert_eq!(seal.open(&["delete", "ada"], &sealed), Some("37"));
        assert_eq!(seal.open(&["delete", "eve"], &sealed), None);
        assert_eq!(seal.open(&["delet", "eada"], &sealed), None);
        let forged = sealed.replace(".37", ".38");
        assert_eq!(seal.open(&["delete", "ada"], &forged), None);
        assert_eq!(seal.open(&["delete", "ada"], "37"), None);
        assert_eq!(Seal::new().unwrap().open(&["delete", "ada"], &sealed), None);
    }
}
