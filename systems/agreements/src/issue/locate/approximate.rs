//! The place in a text that a pattern has the smallest edit distance to.
//!
//! The columns of the matrix of distances are kept as bits, 64 rows in one word, as G. Myers does it (A
//! fast bit-vector algorithm for approximate string matching, 1999); words below which every distance
//! is too large are not computed.

use std::collections::HashMap;

const ROWS: usize = u64::BITS as usize;

/// Some characters to look for.
pub(super) struct Pattern {
    len: usize,
    /// How many words a column has.
    words: usize,
    /// Which row of equalities each character has; the first one is of those that are not in it.
    ascii: [usize; 128],
    others: HashMap<char, usize>,
    /// For each of them, in which rows of the matrix it stands.
    equal: Vec<u64>,
}

/// Where a pattern was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// How many characters of the text are before its end.
    pub end: usize,
    /// How many characters have to be changed, added or removed.
    pub distance: usize,
}

/// 64 rows of a column: where the distance rises and falls from row to row.
#[derive(Clone, Copy)]
struct Word {
    rises: u64,
    falls: u64,
    /// The distance in its last row.
    distance: usize,
}

impl Pattern {
    pub fn new(chars: impl Iterator<Item = char> + Clone) -> Self {
        let len = chars.clone().count();
        let words = len.div_ceil(ROWS);
        let mut new =
            Self { len, words, ascii: [0; 128], others: HashMap::new(), equal: vec![0; words] };
        for (at, c) in chars.enumerate() {
            let mut row = new.row(c);
            if row == 0 {
                row = new.equal.len();
                new.equal.resize(row + words, 0);
                match new.ascii.get_mut(c as usize) {
                    Some(ascii) => *ascii = row,
                    None => drop(new.others.insert(c, row)),
                }
            }
            new.equal[row + at / ROWS] |= 1 << (at % ROWS);
        }
        new
    }

    /// The first of the best places where the pattern ends, wherever it begins.
    pub fn ends_anywhere(
        &self,
        text: impl Iterator<Item = char>,
        distance_max: usize,
    ) -> Option<Found> {
        self.find(text, distance_max, 0)
    }

    /// The first of the best places where the pattern ends, if it begins where the text does.
    pub fn begins_at_once(
        &self,
        text: impl Iterator<Item = char>,
        distance_max: usize,
    ) -> Option<Found> {
        self.find(text, distance_max, 1)
    }

    fn row(&self, c: char) -> usize {
        match self.ascii.get(c as usize) {
            Some(row) => *row,
            None => self.others.get(&c).copied().unwrap_or_default(),
        }
    }

    /// `top` is by how much the distance rises above the first row, from one character of the text to
    /// the next.
    fn find(
        &self,
        text: impl Iterator<Item = char>,
        distance_max: usize,
        top: i8,
    ) -> Option<Found> {
        if self.len == 0 {
            return None;
        }
        let mut column: Vec<Word> = (0..self.words).map(|word| self.first(word)).collect();
        let mut best: Option<Found> = None;
        let mut most = distance_max;
        // The last word that has a distance that is not too large.
        let mut last = (most.div_ceil(ROWS).max(1) - 1).min(self.words - 1);
        for (at, c) in text.enumerate() {
            let row = self.row(c);
            let mut step = top;
            for (word, state) in column.iter_mut().enumerate().take(last + 1) {
                step = state.advance(self.equal[row + word], step, self.end_of(word));
            }
            let below = column[last].distance.saturating_add_signed(-isize::from(step));
            let next = last + 1;
            if next < self.words && below <= most && (self.equal[row + next] & 1 == 1 || step < 0) {
                let distance = below + self.rows_of(next);
                column[next] = Word { rises: !0, falls: 0, distance };
                column[next].advance(self.equal[row + next], step, self.end_of(next));
                last = next;
            } else {
                while last > 0 && column[last].distance >= most + ROWS {
                    last -= 1;
                }
            }
            let distance = column[last].distance;
            if last + 1 == self.words && distance <= most {
                best = Some(Found { end: at + 1, distance });
                if distance == 0 {
                    break;
                }
                most = distance - 1;
            }
        }
        best
    }

    /// A word before the text begins: as many characters are missing as there are.
    fn first(&self, word: usize) -> Word {
        Word { rises: !0, falls: 0, distance: word * ROWS + self.rows_of(word) }
    }

    fn rows_of(&self, word: usize) -> usize {
        (self.len - word * ROWS).min(ROWS)
    }

    /// The bit of a word's last row.
    fn end_of(&self, word: usize) -> u64 {
        1 << (self.rows_of(word) - 1)
    }
}

impl Word {
    /// Goes on by one character. `step` is by how much the distance changes in the row above; what is
    /// given is by how much it changes in the last row.
    fn advance(&mut self, equal: u64, step: i8, end: u64) -> i8 {
        let Self { rises, falls, .. } = *self;
        let vertical = equal | falls;
        let equal = equal | u64::from(step < 0);
        let horizontal = ((equal & rises).wrapping_add(rises) ^ rises) | equal;
        let (up, down) = (falls | !(horizontal | rises), rises & horizontal);
        let change = i8::from(up & end != 0) - i8::from(down & end != 0);
        let up = up << 1 | u64::from(step > 0);
        let down = down << 1 | u64::from(step < 0);
        self.rises = down | !(vertical | up);
        self.falls = up & vertical;
        self.distance = self.distance.saturating_add_signed(isize::from(change));
        change
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    /// The same by the whole matrix.
    fn plain(pattern: &[char], text: &[char], most: usize, top: usize) -> Option<Found> {
        let mut column: Vec<usize> = (0..=pattern.len()).collect();
        let mut best: Option<Found> = None;
        for (at, c) in text.iter().enumerate() {
            let mut diagonal = column[0];
            column[0] += top;
            for row in 1..=pattern.len() {
                let changed = diagonal + usize::from(pattern[row - 1] != *c);
                diagonal = column[row];
                column[row] = changed.min(column[row] + 1).min(column[row - 1] + 1);
            }
            let distance = column[pattern.len()];
            if distance <= most && best.is_none_or(|best| distance < best.distance) {
                best = Some(Found { end: at + 1, distance });
            }
        }
        best
    }

    #[test]
    fn bits_find_what_the_whole_matrix_finds() {
        for seed in 0..3_000 {
            let mut rng = Rng::with_seed(seed);
            let letters = ['a', 'b', 'c', 'é', '語', ' '];
            let letters = &letters[..rng.usize(1..=letters.len())];
            let some = |rng: &mut Rng, most: usize| -> Vec<char> {
                (0..rng.usize(0..=most)).filter_map(|_| rng.choice(letters).copied()).collect()
            };
            let text = some(&mut rng, 300);
            let pattern = match rng.bool() && text.len() > 20 {
                true => {
                    let start = rng.usize(0..text.len() / 2);
                    let mut cut = text[start..].to_vec();
                    for _ in 0..cut.len() / 8 {
                        let at = rng.usize(0..cut.len());
                        cut[at] = letters[rng.usize(0..letters.len())];
                    }
                    cut
                }
                false => some(&mut rng, 200),
            };
            if pattern.is_empty() {
                continue;
            }
            let most = rng.usize(0..=pattern.len() / 2);
            let bits = Pattern::new(pattern.iter().copied());
            let text_chars = || text.iter().copied();
            let (anywhere, at_once) =
                (bits.ends_anywhere(text_chars(), most), bits.begins_at_once(text_chars(), most));
            assert_eq!(anywhere, plain(&pattern, &text, most, 0), "seed {seed}");
            assert_eq!(at_once, plain(&pattern, &text, most, 1), "seed {seed}");
        }
    }
}
