//! Where the server keeps what it knows for itself: below `system:server` of the control store,
//! which no request reaches.

use keyward::{Key, KeyRange, Prefix};

/// The key of something of a kind.
pub fn place(kind: &str, id: &str) -> Key {
    // A plain word is its own encoding.
    Key::from_stored("system").child("server").child(kind).child(id)
}

/// Everything of a kind.
pub fn range(kind: &str) -> KeyRange {
    KeyRange::under(&Prefix::from_segments(["system", "server", kind]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_keys_in_the_range_of_their_kind() {
        let key = place("keys", "a:b");
        assert_eq!(Key::parse("system:server:keys:a%3Ab"), Ok(key.clone()));
        assert!(range("keys").contains(&key) && !range("key").contains(&key));
    }
}
