//! Which shards of a stream to read, and from where.
//!
//! Each shard has an order of its own. It ends after some hours, or when its partition is split, and then its children
//! go on with the same keys. So a shard is read only when its parent has been read to the end. This keeps the changes
//! of one key in their order.

use std::collections::HashSet;
use std::sync::Arc;

/// A shard, as DynamoDB lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) id: String,
    /// May be a shard that is no longer listed.
    pub(super) parent: Option<String>,
    /// Whether nothing will be added to it.
    pub(super) has_ended: bool,
}

/// Where to read on in a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadFrom {
    Beginning,
    /// Where the shard was when the watch began. Only the iterator names this place.
    Latest,
    /// After the record with this sequence number.
    After(String),
}

/// A shard that is being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShardCursor {
    pub(super) id: String,
    pub(super) from: ReadFrom,
    /// DynamoDB's token for the same place. It expires 15 minutes after it was given.
    pub(super) iterator: Option<String>,
}

/// The shards of a stream, and how far each was read. No larger than the list of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Shards {
    /// Those to read, in the order in which it is their turn.
    pub(super) reading: Vec<ShardCursor>,
    /// Those that need no reading any more: they were read to the end, or had ended before the watch began.
    finished: Arc<HashSet<String>>,
    /// Those that were read to the end, and whose children were not listed yet.
    childless: Vec<String>,
}

impl Shards {
    /// The shards that can still change, each from where it is now.
    pub(super) fn latest(listed: &[Listed]) -> Self {
        let ended = listed.iter().filter(|shard| shard.has_ended);
        let finished = Arc::new(ended.map(|shard| shard.id.clone()).collect());
        let mut shards = Self { finished, ..Self::default() };
        shards.start(listed, &ReadFrom::Latest);
        shards
    }

    /// Marks a shard as read to the end.
    pub(super) fn finish(&mut self, id: String) {
        self.reading.retain(|shard| shard.id != id);
        Arc::make_mut(&mut self.finished).insert(id.clone());
        self.childless.push(id);
    }

    /// Starts to read the new shards whose parents are finished, each from its beginning, and forgets the finished
    /// ones that DynamoDB has forgotten.
    pub(super) fn update(&mut self, listed: &[Listed]) {
        let ids: HashSet<&str> = listed.iter().map(|shard| &shard.id[..]).collect();
        if self.finished.iter().any(|id| !ids.contains(&id[..])) {
            Arc::make_mut(&mut self.finished).retain(|id| ids.contains(&id[..]));
        }
        let parents: HashSet<&str> =
            listed.iter().filter_map(|shard| shard.parent.as_deref()).collect();
        self.childless.retain(|id| ids.contains(&id[..]) && !parents.contains(&id[..]));
        self.start(listed, &ReadFrom::Beginning);
    }

    /// Whether the children of some shard should be listed soon.
    pub(super) fn awaits_children(&self) -> bool {
        !self.childless.is_empty()
    }

    fn start(&mut self, listed: &[Listed], from: &ReadFrom) {
        let reading: HashSet<&str> = self.reading.iter().map(|shard| &shard.id[..]).collect();
        let is_new = |id: &str| !reading.contains(id) && !self.finished.contains(id);
        let new: HashSet<&str> =
            listed.iter().map(|shard| &shard.id[..]).filter(|id| is_new(id)).collect();
        let is_unread = |id: &str| reading.contains(id) || new.contains(id);
        let mut started = Vec::new();
        for shard in listed.iter().filter(|shard| new.contains(&shard.id[..])) {
            if !shard.parent.as_deref().is_some_and(is_unread) {
                let (id, from) = (shard.id.clone(), from.clone());
                started.push(ShardCursor { id, from, iterator: None });
            }
        }
        self.reading.extend(started);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(id: &str, parent: Option<&str>, has_ended: bool) -> Listed {
        Listed { id: id.to_owned(), parent: parent.map(str::to_owned), has_ended }
    }

    fn open(id: &str, parent: Option<&str>) -> Listed {
        listed(id, parent, false)
    }

    fn ended(id: &str, parent: Option<&str>) -> Listed {
        listed(id, parent, true)
    }

    fn reading(shards: &Shards) -> Vec<(&str, &ReadFrom)> {
        shards.reading.iter().map(|shard| (&shard.id[..], &shard.from)).collect()
    }

    #[test]
    fn a_watch_begins_at_the_open_shards() {
        let list = [ended("a", None), open("b", Some("a")), open("c", Some("gone"))];
        let mut shards = Shards::latest(&list);
        let latest = [("b", &ReadFrom::Latest), ("c", &ReadFrom::Latest)];
        assert_eq!(reading(&shards), latest);
        // Listed again, the shards that had ended stay unread.
        shards.update(&list);
        assert_eq!(reading(&shards), latest);
        assert!(!shards.awaits_children());
    }

    #[test]
    fn children_are_read_from_the_beginning_after_their_parent() {
        let mut shards = Shards::latest(&[open("a", None)]);
        let split = [ended("a", None), open("b", Some("a")), open("c", Some("a"))];
        shards.update(&split);
        assert_eq!(reading(&shards), [("a", &ReadFrom::Latest)]);
        shards.finish("a".to_owned());
        assert!(shards.awaits_children());
        shards.update(&split);
        assert_eq!(reading(&shards), [("b", &ReadFrom::Beginning), ("c", &ReadFrom::Beginning)]);
        assert!(!shards.awaits_children());
    }

    #[test]
    fn generations_that_passed_unread_are_read_one_after_the_other() {
        let mut shards = Shards::latest(&[open("a", None)]);
        // In any order, as DynamoDB may list them.
        let list = [open("c", Some("b")), ended("b", Some("a")), ended("a", None)];
        shards.finish("a".to_owned());
        for (id, next) in [("b", "c"), ("c", "d")] {
            shards.update(&list);
            assert_eq!(reading(&shards), [(id, &ReadFrom::Beginning)], "before {next}");
            shards.finish(id.to_owned());
        }
        shards.update(&list);
        assert_eq!(reading(&shards), []);
    }

    #[test]
    fn a_child_that_is_open_beside_its_parent_waits_for_it() {
        // The list is read in pages, so a shard may end while it is read.
        let shards = Shards::latest(&[open("b", Some("a")), open("a", None)]);
        assert_eq!(reading(&shards), [("a", &ReadFrom::Latest)]);
    }

    #[test]
    fn a_shard_that_descends_from_none_that_is_known_is_read_from_the_beginning() {
        let mut shards = Shards::latest(&[open("a", None)]);
        shards.update(&[open("a", None), open("x", None), open("y", Some("gone"))]);
        let beginning = &ReadFrom::Beginning;
        assert_eq!(
            reading(&shards),
            [("a", &ReadFrom::Latest), ("x", beginning), ("y", beginning)]
        );
    }

    #[test]
    fn children_that_are_listed_late_are_waited_for() {
        let mut shards = Shards::latest(&[open("a", None)]);
        shards.finish("a".to_owned());
        shards.update(&[ended("a", None)]);
        assert!(shards.awaits_children());
        shards.update(&[ended("a", None), open("b", Some("a"))]);
        assert!(!shards.awaits_children());
        assert_eq!(reading(&shards), [("b", &ReadFrom::Beginning)]);
    }

    #[test]
    fn shards_that_dynamodb_forgot_are_forgotten() {
        let mut shards = Shards::latest(&[ended("a", None), open("b", Some("a"))]);
        shards.finish("b".to_owned());
        shards.update(&[open("c", Some("b"))]);
        assert_eq!(reading(&shards), [("c", &ReadFrom::Beginning)]);
        assert!(shards.finished.is_empty() && !shards.awaits_children());
    }
}
