use std::collections::HashMap;

/// Codes that one range may cover.
const RANGE_CODES_MAX: u32 = 0x1_0000;

/// A map from the codes in a text to what they mean: letters, or glyphs of a font.
#[derive(Debug, Default)]
pub(crate) struct CMap {
    /// The lengths of codes: how many bytes, the lowest and the highest.
    spaces: Vec<(usize, u32, u32)>,
    letters: HashMap<u32, String>,
    letter_ranges: Vec<(u32, u32, Vec<u16>)>,
    glyph_ranges: Vec<(u32, u32, u32)>,
}

enum Token<'a> {
    Hex(Vec<u8>),
    Number(u32),
    Open,
    Close,
    Word(&'a [u8]),
}

impl CMap {
    /// Reads a map; what makes no sense in it is passed over.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let mut map = Self::default();
        let mut operands: Vec<Token<'_>> = Vec::new();
        let mut rest = bytes;
        while let Some((token, after)) = next_token(rest) {
            rest = after;
            let Token::Word(word) = token else {
                operands.push(token);
                continue;
            };
            match word {
                b"endcodespacerange" => map.add_spaces(&operands),
                b"endbfchar" => map.add_letters(&operands),
                b"endbfrange" => map.add_letter_ranges(&operands),
                b"endcidrange" => map.add_glyphs(&operands, 3),
                b"endcidchar" => map.add_glyphs(&operands, 2),
                _ => {}
            }
            operands.clear();
        }
        map.letter_ranges.sort_by_key(|range| range.0);
        map.glyph_ranges.sort_by_key(|range| range.0);
        map
    }

    /// The first code in a text and how many bytes it has, or `None` if no length is known.
    pub(crate) fn code(&self, bytes: &[u8]) -> Option<(u32, usize)> {
        (1..=bytes.len().min(4)).find_map(|length| {
            let code = number(&bytes[..length]);
            let known = |(bytes, low, high): &(usize, u32, u32)| {
                *bytes == length && (*low..=*high).contains(&code)
            };
            self.spaces.iter().any(known).then_some((code, length))
        })
    }

    /// The letters that a code stands for.
    pub(crate) fn text(&self, code: u32) -> Option<String> {
        if let Some(text) = self.letters.get(&code) {
            return Some(text.clone());
        }
        let after = self.letter_ranges.partition_point(|range| range.0 <= code);
        let (low, high, first) = self.letter_ranges.get(after.checked_sub(1)?)?;
        if code > *high {
            return None;
        }
        let mut units = first.clone();
        let last = units.last_mut()?;
        *last = last.wrapping_add(u16::try_from(code - low).ok()?);
        Some(String::from_utf16_lossy(&units))
    }

    /// The glyph that a code stands for.
    pub(crate) fn glyph(&self, code: u32) -> Option<u32> {
        let after = self.glyph_ranges.partition_point(|range| range.0 <= code);
        let (low, high, first) = self.glyph_ranges.get(after.checked_sub(1)?)?;
        (code <= *high).then(|| first.wrapping_add(code - low))
    }

    fn add_spaces(&mut self, operands: &[Token<'_>]) {
        for pair in operands.chunks_exact(2) {
            if let [Token::Hex(low), Token::Hex(high)] = pair {
                self.spaces.push((low.len(), number(low), number(high)));
            }
        }
    }

    fn add_letters(&mut self, operands: &[Token<'_>]) {
        for pair in operands.chunks_exact(2) {
            if let [Token::Hex(code), Token::Hex(text)] = pair {
                self.letters.insert(number(code), String::from_utf16_lossy(&units(text)));
            }
        }
    }

    fn add_letter_ranges(&mut self, operands: &[Token<'_>]) {
        let mut operands = operands.iter();
        while let (Some(Token::Hex(low)), Some(Token::Hex(high)), Some(target)) =
            (operands.next(), operands.next(), operands.next())
        {
            let (low, high) = (number(low), number(high));
            match target {
                Token::Hex(text) if high >= low && high - low < RANGE_CODES_MAX => {
                    self.letter_ranges.push((low, high, units(text)));
                }
                Token::Open => {
                    let texts =
                        operands.by_ref().take_while(|token| !matches!(token, Token::Close));
                    for (code, text) in (low..=high).zip(texts) {
                        if let Token::Hex(text) = text {
                            self.letters.insert(code, String::from_utf16_lossy(&units(text)));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn add_glyphs(&mut self, operands: &[Token<'_>], size: usize) {
        for entry in operands.chunks_exact(size) {
            match entry {
                [Token::Hex(low), Token::Hex(high), Token::Number(glyph)] => {
                    self.glyph_ranges.push((number(low), number(high), *glyph));
                }
                [Token::Hex(code), Token::Number(glyph)] => {
                    self.glyph_ranges.push((number(code), number(code), *glyph));
                }
                _ => {}
            }
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn units(bytes: &[u8]) -> Vec<u16> {
    if let [byte] = bytes {
        return vec![u16::from(*byte)];
    }
    bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
}

fn next_token(bytes: &[u8]) -> Option<(Token<'_>, &[u8])> {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"<>[]()/%\0".contains(byte);
    let mut rest = bytes;
    loop {
        let (first, after) = rest.split_first()?;
        rest = match first {
            b'%' => after
                .iter()
                .position(|byte| matches!(byte, b'\n' | b'\r'))
                .map(|end| &after[end..])?,
            b'<' if after.first() != Some(&b'<') => {
                let end = after.iter().position(|byte| *byte == b'>')?;
                return Some((Token::Hex(hex(&after[..end])), &after[end + 1..]));
            }
            b'[' => return Some((Token::Open, after)),
            b']' => return Some((Token::Close, after)),
            b'/' => {
                let end = after.iter().position(is_end).unwrap_or(after.len());
                &after[end..]
            }
            byte if is_end(byte) => after,
            _ => {
                let end = rest.iter().position(is_end).unwrap_or(rest.len());
                let word = &rest[..end];
                let number = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
                return Some((number.map_or(Token::Word(word), Token::Number), &rest[end..]));
            }
        };
    }
}

fn hex(digits: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .iter()
        .filter_map(|digit| {
            char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
        })
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_from_single_codes_ranges_and_lists() {
        let map = CMap::parse(
            b"/CIDInit /ProcSet findresource begin % comment\n1 begincodespacerange <0000><FFFF> \
              endcodespacerange 2 beginbfchar <0003> <0020> <0004> <00660066> endbfchar \
              2 beginbfrange <0010><0012><0218> <0020> <0021> [<0041> <D835DC00>] endbfrange",
        );
        assert_eq!(map.code(&[0, 3, 0]), Some((3, 2)));
        assert_eq!(map.text(4).unwrap(), "ff");
        assert_eq!(map.text(0x12).unwrap(), "\u{21a}");
        assert_eq!(map.text(0x13), None);
        assert_eq!(map.text(0x21).unwrap(), "\u{1d400}");
    }

    #[test]
    fn glyphs_come_from_ranges() {
        let map = CMap::parse(
            b"1 begincidrange <20> <7e> 100 endcidrange 1 begincidchar <80> 7 endcidchar",
        );
        assert_eq!((map.glyph(0x21), map.glyph(0x80), map.glyph(0x81)), (Some(101), Some(7), None));
    }
}
