//! The keys of a space, level by level, and what is done to all of them.

use keyward_engine::{Entry, ErrorKind, Order, Row, Tier, Want};
use keyward_key::{Bindings, Key, KeyRange, Prefix};

use crate::access::Part;
use crate::change::{Precondition, Record};
use crate::cursor::Question;
use crate::query::{BUDGET_DEFAULT, BUDGET_MAX, LIMIT_DEFAULT, LIMIT_MAX};
use crate::space::{Operation, Space};
use crate::walk::Walk;
use crate::{Error, Result, Written};

/// Which keys of a space to list.
///
/// ```
/// use keyward_key::Bindings;
/// use keyward_records::Listing;
///
/// let listing = Listing::new(Bindings::new().with("user", "ada")).depth(1).limit(20);
/// assert_eq!(listing.depth, Some(1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The values of the pattern's leading variables. The owner need not be said.
    pub values: Bindings,
    /// What the segment after these values starts with.
    pub starts: Option<String>,
    /// How many levels below these values are shown; what lies deeper shows as the prefix it shares.
    pub depth: Option<usize>,
    /// In which direction.
    pub order: Order,
    /// At most this many items.
    pub limit: usize,
    /// Where an earlier page of the same listing ended.
    pub cursor: Option<String>,
    /// How many keys may be looked at for one page, also of other spaces that lie between. A page that
    /// ends early for it has a cursor.
    pub budget: usize,
}

impl Listing {
    /// Every key below these leading values.
    pub fn new(values: Bindings) -> Self {
        Self {
            values,
            starts: None,
            depth: None,
            order: Order::Ascending,
            limit: LIMIT_DEFAULT,
            cursor: None,
            budget: BUDGET_DEFAULT,
        }
    }

    /// The same, where the segment after the values starts with a text.
    #[must_use]
    pub fn starting(mut self, text: impl Into<String>) -> Self {
        self.starts = Some(text.into());
        self
    }

    /// The same, looking at no more than so many keys for one page.
    #[must_use]
    pub fn budget(mut self, budget: usize) -> Self {
        self.budget = budget;
        self
    }

    /// The same, showing only so many levels.
    #[must_use]
    pub fn depth(mut self, depth: usize) -> Self {
        self.depth = Some(depth);
        self
    }

    /// The same from the end.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.order = Order::Descending;
        self
    }

    /// The same with at most `limit` items.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// The same, going on where a page ended.
    #[must_use]
    pub fn after(mut self, cursor: Option<String>) -> Self {
        self.cursor = cursor;
        self
    }
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listed {
    /// The keys, in the order asked for, within the depth asked for.
    pub items: Vec<ListedItem>,
    /// Where to go on; `None` at the end. A page may be short, even empty, and still have a next one.
    pub next: Option<String>,
}

/// One item of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedItem {
    /// A record's key.
    Key(Key),
    /// A prefix with records below it that lie deeper.
    Prefix(Prefix),
}

/// How many rows are read to find the next item of a listing by levels.
const PEEK_ROWS: usize = 16;
/// How many records are removed together.
const REMOVED_TOGETHER_MAX: usize = 100;

impl Space {
    /// One page of the space's keys.
    pub async fn list(&self, listing: &Listing) -> Result<Listed> {
        if listing.limit == 0 || listing.limit > LIMIT_MAX || listing.depth == Some(0) {
            return Err(Error::BadQuery(format!(
                "a listing has a limit from 1 to {LIMIT_MAX} and shows at least one level"
            )));
        }
        if listing.budget == 0 || listing.budget > BUDGET_MAX {
            let message = format!("the budget of a listing is from 1 to {BUDGET_MAX}");
            return Err(Error::BadQuery(message));
        }
        let values = listing.values.clone();
        let Part { mut range, prefix } = self.access.starting(values, listing.starts.as_deref())?;
        if let Some(cursor) = &listing.cursor {
            let question = self.list_question(listing, &prefix).await?;
            let position = question.position(cursor, self.shared.clock.now())?;
            range = past(&range, &position, listing.order)?;
        }
        let level = listing.depth.map(|depth| prefix.depth().saturating_add(depth));
        let (items, position) = self.list_items(listing, range, level).await?;
        let next = match position {
            Some(position) => {
                let question = self.list_question(listing, &prefix).await?;
                Some(question.cursor(&position, self.shared.clock.now()))
            }
            None => None,
        };
        Ok(Listed { items, next })
    }

    /// The items of a page, and where it ended; `None` at the end of the range.
    async fn list_items(
        &self,
        listing: &Listing,
        mut range: KeyRange,
        level: Option<usize>,
    ) -> Result<(Vec<ListedItem>, Option<Vec<u8>>)> {
        // Where a writer announces a record before it makes it, the key alone does not tell.
        let marked = self.guarantee() == Tier::Recoverable;
        let want = if marked { Want::Entries } else { Want::Keys };
        let mut items = Vec::new();
        let mut budget = listing.budget;
        loop {
            let missing = listing.limit - items.len();
            let rows = if level.is_some() { PEEK_ROWS.min(missing) } else { missing };
            let walk = self.walk(range.clone(), listing.order, want);
            let walked = walk.next(None, rows, budget).await?;
            let mut jump = None;
            let mut rows = walked.rows.into_iter();
            for row in rows.by_ref() {
                if is_marker(&row) {
                    continue;
                }
                match level.and_then(|level| row.key.ancestor(level)) {
                    None => items.push(ListedItem::Key(row.key)),
                    Some(shared) => {
                        items.push(ListedItem::Prefix(shared.clone()));
                        jump = Some(shared);
                        break;
                    }
                }
            }
            // What lies below a prefix that is shown is jumped over, and does not count.
            budget = budget.saturating_sub(walked.read - rows.len());
            let position = match jump {
                Some(shared) => after_prefix(&shared),
                None => match walked.position {
                    Some(key) => after_key(&key),
                    None => return Ok((items, None)),
                },
            };
            range = past(&range, &position, listing.order)?;
            if range.is_empty() {
                return Ok((items, None));
            }
            if items.len() == listing.limit || budget == 0 {
                return Ok((items, Some(position)));
            }
        }
    }

    async fn list_question(&self, listing: &Listing, prefix: &Prefix) -> Result<Question> {
        let mut question = Question::new(&self.shared.secret().await?, &self.access.caller);
        question.part(b"list");
        question.part(self.access.space.name.as_bytes());
        question.part(prefix.to_string().as_bytes());
        question.part(format!("{:?} {:?}", listing.depth, listing.order).as_bytes());
        question.optional(listing.starts.as_deref());
        Ok(question)
    }

    /// Where the records that the caller may list lie, narrowed by these leading values: for those who
    /// watch them. Other keys may lie between them.
    pub fn range(&self, values: Bindings) -> Result<KeyRange> {
        Ok(self.access.listed(values)?.range)
    }

    pub(crate) fn walk(&self, range: KeyRange, order: Order, want: Want) -> Walk<'_> {
        let pattern = &self.access.space.key;
        Walk { store: &self.shared.store, pattern, range, order, want }
    }

    /// Removes every record below these leading values, with their index entries, and gives their
    /// number. Records that are created meanwhile may stay. Many are removed in several commits: when
    /// one of them fails, what the earlier ones removed is gone.
    pub async fn delete_prefix(&self, values: Bindings) -> Result<usize> {
        self.delete_prefix_up_to(values, usize::MAX).await
    }

    /// The same, but removes at most `most` records, the first in the order of their keys: for callers who have
    /// confirmed how many there are. Records that are created meanwhile are then not removed on top of these.
    pub async fn delete_prefix_up_to(&self, values: Bindings, most: usize) -> Result<usize> {
        let range = self.access.listed(values)?.range;
        let mut removed = 0;
        let mut position = None;
        let mut together_max = REMOVED_TOGETHER_MAX;
        loop {
            let walk = self.walk(range.clone(), Order::Ascending, Want::Keys);
            let walked = walk.next(position, REMOVED_TOGETHER_MAX, BUDGET_MAX).await?;
            let keys: Vec<Key> = walked.rows.into_iter().map(|row| row.key).collect();
            let mut rest = keys.as_slice();
            // Some keys turn out to be no records, and others of the page take their place.
            while removed < most && !rest.is_empty() {
                let (some, later) = rest.split_at(rest.len().min(most - removed));
                removed += self.remove(some, &mut together_max).await?;
                rest = later;
            }
            position = walked.position;
            if position.is_none() || removed >= most {
                return Ok(removed);
            }
        }
    }

    /// Removes records, as many together as fit a commit, at most `together_max`; lowers that where
    /// fewer fit.
    async fn remove(&self, keys: &[Key], together_max: &mut usize) -> Result<usize> {
        let mut removed = 0;
        let mut rest = keys;
        while !rest.is_empty() {
            let (some, later) = rest.split_at(rest.len().min(*together_max));
            let delete = |key: &Key| Operation::Delete(key.clone(), Precondition::Any);
            let operations: Vec<Operation> = some.iter().map(delete).collect();
            let written = if self.guarantee() == Tier::Atomic {
                self.together(operations).await
            } else {
                self.each(operations).await.into_iter().collect()
            };
            match written {
                Ok(written) => {
                    removed += written.iter().filter(|w| **w == Written::Removed).count();
                    rest = later;
                }
                Err(Error::Store(error))
                    if error.kind() == ErrorKind::LimitExceeded && some.len() > 1 =>
                {
                    *together_max = some.len() / 2;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }
}

/// Whether a row is only the mark of a record to come.
fn is_marker(row: &Row) -> bool {
    let stored = |entry: &Entry| Record::stored(row.key.clone(), entry.clone());
    row.entry.as_ref().is_some_and(|entry| matches!(stored(entry), Ok(None)))
}

const AFTER_KEY: u8 = 0;
const AFTER_PREFIX: u8 = 1;

fn after_key(key: &[u8]) -> Vec<u8> {
    [&[AFTER_KEY][..], key].concat()
}

fn after_prefix(prefix: &Prefix) -> Vec<u8> {
    let key = prefix.to_key();
    [&[AFTER_PREFIX][..], key.as_ref().map_or(&[][..], Key::as_bytes)].concat()
}

fn past(range: &KeyRange, position: &[u8], order: Order) -> Result<KeyRange> {
    match position {
        [AFTER_KEY, key @ ..] => Ok(past_key(range, &Key::from_stored(key.to_vec()), order)),
        [AFTER_PREFIX, key @ ..] => {
            let prefix = Prefix::from(&Key::from_stored(key.to_vec()));
            Ok(past_prefix(range, &prefix, order))
        }
        _ => Err(Error::BadCursor("it stands nowhere")),
    }
}

fn past_key(range: &KeyRange, key: &Key, order: Order) -> KeyRange {
    match order {
        Order::Ascending => range.after(key),
        Order::Descending => range.before(key),
    }
}

fn past_prefix(range: &KeyRange, prefix: &Prefix, order: Order) -> KeyRange {
    match order {
        Order::Ascending => range.after_prefix(prefix),
        Order::Descending => range.before_prefix(prefix),
    }
}
