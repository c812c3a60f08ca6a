//! Contents that belong to nobody.

use std::collections::BTreeSet;

use keyward_engine::{Cursor, List, Listed};
use keyward_key::Prefix;

use super::Uploads;
use super::content::contents;
use crate::page::UPLOADS;
use crate::{PageId, Result};

/// What a sweep removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Uploads that were given up or replaced.
    pub contents: usize,
    /// Their pieces.
    pub chunks: usize,
}

impl Uploads {
    /// Removes contents of uploads that were given up, or that were replaced by a process which ended
    /// before it removed them. Uploads that are under way are left alone. May be called at any time, by any number
    /// of processes.
    pub async fn sweep(&self) -> Result<Swept> {
        let mut swept = Swept::default();
        let mut after = None;
        loop {
            let (pages, next) = self.children(Prefix::from_segments([UPLOADS]), after).await?;
            for page in pages {
                if let Ok(page) = PageId::new(&page) {
                    self.sweep_page(&page, &mut swept).await?;
                }
            }
            after = next;
            if after.is_none() {
                return Ok(swept);
            }
        }
    }

    async fn sweep_page(&self, page: &PageId, swept: &mut Swept) -> Result<()> {
        let mut after = None;
        loop {
            let (found, next) = self.children(contents(page), after).await?;
            for content in found {
                if let Some(chunks) = self.remove_content(page, &content).await? {
                    swept.contents += usize::from(chunks > 0);
                    swept.chunks += chunks;
                }
            }
            after = next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// The segments that follow a prefix.
    async fn children(
        &self,
        prefix: Prefix,
        after: Option<Cursor>,
    ) -> Result<(BTreeSet<String>, Option<Cursor>)> {
        let listing = self.store.list(&List::new(prefix).depth(1).after(after)).await?;
        let names = listing.items.iter().filter_map(|item| {
            let last = match item {
                Listed::Key(key) => key.segments().last(),
                Listed::Prefix(prefix) => prefix.segments().last(),
            };
            last.map(|segment| segment.into_owned())
        });
        Ok((names.collect(), listing.next))
    }
}
