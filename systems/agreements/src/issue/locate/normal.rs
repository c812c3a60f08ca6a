/// A text with white space, quotes and dashes made alike, that knows where its characters come from.
pub(super) struct Normal {
    pub chars: Vec<char>,
    /// For each, which character of the text it was, counted from zero.
    origins: Vec<usize>,
}

impl Normal {
    /// Without white space at the beginning and the end.
    pub fn of(text: &str) -> Self {
        let mut normal = Self { chars: Vec::new(), origins: Vec::new() };
        let mut space = None;
        for (at, c) in text.chars().enumerate() {
            if c.is_whitespace() {
                space = space.or(Some(at));
                continue;
            }
            let alike = alike(c);
            if alike.is_empty() {
                continue;
            }
            if let Some(at) = space.take()
                && !normal.chars.is_empty()
            {
                normal.push(' ', at);
            }
            match alike {
                "=" => normal.push(c, at),
                alike => alike.chars().for_each(|c| normal.push(c, at)),
            }
        }
        normal
    }

    fn push(&mut self, c: char, origin: usize) {
        self.chars.push(c);
        self.origins.push(origin);
    }

    pub fn text(&self) -> String {
        self.chars.iter().collect()
    }

    /// Where some of its characters, from the first to before the last, are in the text itself, and
    /// how long that is.
    pub fn origin(&self, start: usize, end: usize) -> (usize, usize) {
        let of = |at: usize| self.origins.get(at).copied();
        match (of(start), end.checked_sub(1).and_then(of)) {
            (Some(first), Some(last)) if first <= last => (first, last + 1 - first),
            _ => (0, 0),
        }
    }
}

/// What stands for a character: nothing for those that cannot be seen, and `=` for itself.
fn alike(c: char) -> &'static str {
    match c {
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => "",
        '‘' | '’' | '‚' | '‛' | '′' | '‹' | '›' | '`' | '´' => "'",
        '“' | '”' | '„' | '‟' | '″' | '«' | '»' => "\"",
        '\u{2010}'..='\u{2015}' | '−' => "-",
        '…' => "...",
        _ => "=",
    }
}
