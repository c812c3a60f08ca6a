//! The end of what a command says.

/// Keeps the last bytes of a stream.
#[derive(Debug, Default)]
pub struct Tail(Vec<u8>);

impl Tail {
    const BYTES_MAX: usize = 2_048;

    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let surplus = self.0.len().saturating_sub(Self::BYTES_MAX);
        self.0.drain(..surplus);
    }

    /// The text, without what of a character was cut off at its beginning.
    pub fn text(&self) -> String {
        let begin = self.0.iter().position(|byte| byte & 0xc0 != 0x80).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[begin..]).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept_and_no_character_is_cut() {
        let mut tail = Tail::default();
        for _ in 0..5_000 {
            tail.push("äx".as_bytes());
        }
        tail.push(b" end\n");
        let text = tail.text();
        assert!(text.ends_with("äx end") && text.len() <= Tail::BYTES_MAX);
        assert!(!text.contains('\u{fffd}'));
    }
}
