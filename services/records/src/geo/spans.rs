//! Sets of cells as sorted runs of their numbers.

/// The cells from `first` to `last`, both included, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// A set of cells: its spans are in order, and between two of them at least one cell is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<Span>);

impl Spans {
    /// The cells that are in any of the spans, which may come in any order and overlap.
    pub(super) fn new(mut spans: Vec<Span>) -> Self {
        spans.sort_unstable();
        spans.dedup_by(|next, kept| {
            let meets = next.first <= kept.last + 1;
            if meets {
                kept.last = kept.last.max(next.last);
            }
            meets
        });
        Self(spans)
    }

    pub(super) fn as_slice(&self) -> &[Span] {
        &self.0
    }

    /// The cells that are in either set.
    pub(super) fn union(&self, other: &Self) -> Self {
        Self::new([self.as_slice(), other.as_slice()].concat())
    }

    /// The cells of this set that are not in the other.
    pub(super) fn without(&self, other: &Self) -> Self {
        let mut left = Vec::with_capacity(self.0.len() + other.0.len());
        let mut taken = other.0.iter().copied().peekable();
        for &Span { mut first, last } in &self.0 {
            while taken.next_if(|hole| hole.last < first).is_some() {}
            while let Some(&hole) = taken.peek().filter(|hole| hole.first <= last) {
                if first < hole.first {
                    left.push(Span { first, last: hole.first - 1 });
                }
                first = hole.last + 1;
                if last < first {
                    // The hole may reach into the next span too.
                    break;
                }
                taken.next();
            }
            if first <= last {
                left.push(Span { first, last });
            }
        }
        Self(left)
    }

    /// The smallest set of at most `spans_max` spans that holds this one.
    ///
    /// What it adds are whole gaps between spans, and each closed gap saves one span. So the widest
    /// gaps stay open, whatever their order, and no other choice adds fewer cells.
    pub(super) fn within(mut self, spans_max: usize) -> Self {
        let excess = self.0.len().saturating_sub(spans_max);
        if excess == 0 {
            return self;
        }
        let mut gaps: Vec<(u64, usize)> =
            (1..self.0.len()).map(|at| (self.0[at].first - self.0[at - 1].last, at)).collect();
        gaps.select_nth_unstable(excess - 1);
        let mut closed: Vec<usize> = gaps[..excess].iter().map(|&(_, at)| at).collect();
        closed.sort_unstable();

        let mut closed = closed.into_iter().peekable();
        let mut kept: Vec<Span> = Vec::with_capacity(spans_max);
        for (at, span) in self.0.drain(..).enumerate() {
            match kept.last_mut() {
                Some(before) if closed.next_if_eq(&at).is_some() => before.last = span.last,
                _ => kept.push(span),
            }
        }
        Self(kept)
    }
}
