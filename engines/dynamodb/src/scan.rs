//! Pages of entries in key order, and counts of all of them.

use aws_sdk_dynamodb::types::{AttributeValue, Select};
use futures_util::future::try_join_all;
use keyward_engine::{Cursor, ErrorKind, Order, Page, PageBytes, Result, Row, Scan, Want};
use keyward_key::{Key, KeyRange};

use crate::engine::DynamoDb;
use crate::item::{self, Item, Stored};
use crate::layout::{self, Layout, PARTITION, Place, SORT, Span};

/// How many roots are read at the same time at most, once the first ones had little.
const TOGETHER_MAX: usize = 16;
/// How many roots one page reads at most. A page that found little by then is short.
const ROOTS_MAX: usize = 128;
/// After how many bytes of values a page ends. One request gives a megabyte.
const PAGE_BYTES_MAX: usize = 4 << 20;
const DOING: &str = "cannot scan";
/// What separates the segments of an encoded key.
const SEPARATOR: u8 = 0x00;

/// The rows of one request.
struct Part {
    rows: Vec<Row>,
    /// The key to go on after.
    next: Option<Key>,
}

/// Which entries count.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Count {
    Present,
    Expired,
}

impl DynamoDb {
    pub(crate) async fn page(&self, scan: &Scan) -> Result<Page> {
        let range = scan.remaining();
        if range.is_empty() {
            return Ok(Page::default());
        }
        let layout = self.layout();
        if let Some(root) = layout.only_root(&range) {
            let part = self.part(root, &range, scan, scan.limit).await?;
            return Ok(Page { rows: part.rows, next: part.next.as_ref().map(Cursor::after_key) });
        }
        let mut page = Page::default();
        let mut bytes = PageBytes::new(PAGE_BYTES_MAX);
        let (roots, more) = self.roots_in(&range, scan.order).await?;
        let (mut read, mut together) = (0, 1);
        while read < roots.len() {
            let some: Vec<&Vec<u8>> = roots.iter().skip(read).take(together).collect();
            let left = scan.limit - page.rows.len();
            let parts = some.iter().map(|root| self.part(root, &range, scan, left));
            for (root, part) in some.iter().zip(try_join_all(parts).await?) {
                for row in part.rows {
                    row.entry.iter().for_each(|entry| bytes.add_entry(entry));
                    page.rows.push(row);
                    if page.rows.len() == scan.limit || bytes.is_full() {
                        page.next = page.rows.last().map(|row| Cursor::after_key(&row.key));
                        return Ok(page);
                    }
                }
                page.next = part.next.as_ref().map(Cursor::after_key);
                if page.next.is_some() {
                    return Ok(page);
                }
                read += 1;
                page.next = Some(after_root(root, layout, scan.order));
            }
            together = (together * 2).min(TOGETHER_MAX);
        }
        if !more {
            page.next = None;
        }
        Ok(page)
    }

    /// The roots that a range may reach into, in order, and whether there are more.
    async fn roots_in(&self, range: &KeyRange, order: Order) -> Result<(Vec<Vec<u8>>, bool)> {
        let span = self.layout().roots_in(range);
        let request = || {
            let request = self.query(layout::ROOTS, &span, order);
            request.limit(i32::try_from(ROOTS_MAX).unwrap_or(i32::MAX)).send()
        };
        let now = self.client().clock.now();
        let answer = self.client().send(DOING, request).await?;
        let more = answer.last_evaluated_key.is_some();
        let items = answer.items.unwrap_or_default();
        let roots = items.iter().map(|item| {
            let stored = Stored(item);
            let root = stored.bytes(SORT).and_then(layout::root_of);
            root.map(<[u8]>::to_vec).ok_or_else(|| item::corrupt("a row of roots has no root"))
        });
        let roots = roots.collect::<Result<Vec<_>>>()?;
        self.roots().confirm(roots.iter().map(Vec::as_slice), now);
        Ok((roots, more))
    }

    /// The rows of one root, as many as one request gives.
    async fn part(&self, root: &[u8], range: &KeyRange, scan: &Scan, limit: usize) -> Result<Part> {
        let Some(span) = self.layout().span(root, range) else {
            return Ok(Part { rows: Vec::new(), next: None });
        };
        let partition = layout::partition(root);
        let now = item::integer(self.client().now_ms());
        let request = || {
            let request = self.query(&partition, &span, scan.order);
            let keys = (scan.want == Want::Keys).then(|| format!("{PARTITION}, {SORT}"));
            request
                .filter_expression("attribute_not_exists(e) OR e > :now")
                .expression_attribute_values(":now", now.clone())
                .set_projection_expression(keys)
                .limit(i32::try_from(limit).unwrap_or(i32::MAX))
                .send()
        };
        let answer = self.client().send(DOING, request).await?;
        let mut rows = Vec::new();
        for item in answer.items.unwrap_or_default() {
            let row = row(&item, scan.want)?;
            if range.contains(&row.key) {
                rows.push(row);
            }
        }
        let next = answer.last_evaluated_key.map(|last| Stored(&last).key()).transpose()?;
        Ok(Part { rows, next })
    }

    fn query(
        &self,
        partition: &[u8],
        span: &Span,
        order: Order,
    ) -> aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder {
        let within = match &span.to {
            Some(_) => format!("{PARTITION} = :partition AND {SORT} BETWEEN :from AND :to"),
            None => format!("{PARTITION} = :partition AND {SORT} >= :from"),
        };
        let mut query = self.client().sdk.query().table_name(&self.client().options.table);
        query = query
            .key_condition_expression(within)
            .expression_attribute_values(":partition", item::binary(partition))
            .expression_attribute_values(":from", item::binary(&span.from.sort));
        if let Some(to) = &span.to {
            query = query.expression_attribute_values(":to", item::binary(&to.sort));
        }
        if let Some(edge) = span.begins_after(order) {
            let place = Place { partition: partition.to_vec(), sort: edge.to_vec() };
            query = query.set_exclusive_start_key(Some(item::at(&place)));
        }
        query.scan_index_forward(order == Order::Ascending).consistent_read(true)
    }

    /// How many entries there are. Everything is read for it, and nothing but a number sent.
    pub(crate) async fn count(&self, which: Count) -> Result<u64> {
        let filter = match which {
            Count::Present => "attribute_exists(v) AND (attribute_not_exists(e) OR e > :now)",
            Count::Expired => "attribute_exists(v) AND e <= :now",
        };
        let now: AttributeValue = item::integer(self.client().now_ms());
        let mut after: Option<Item> = None;
        let mut count = 0;
        loop {
            let request = || {
                let request = self.client().sdk.scan().table_name(&self.client().options.table);
                request
                    .select(Select::Count)
                    .filter_expression(filter)
                    .expression_attribute_values(":now", now.clone())
                    .set_exclusive_start_key(after.clone())
                    .consistent_read(true)
                    .send()
            };
            let answer = self.client().send("cannot count the entries", request).await?;
            count += u64::try_from(answer.count).unwrap_or_default();
            after = answer.last_evaluated_key;
            if after.is_none() {
                return Ok(count);
            }
        }
    }
}

fn row(item: &Item, want: Want) -> Result<Row> {
    let stored = Stored(item);
    let key = stored.key()?;
    let entry = match want {
        Want::Keys => None,
        Want::Entries => Some(stored.entry().map_err(|error| {
            keyward_engine::Error::new(ErrorKind::Corrupt, format!("{key}: {error}"))
        })?),
    };
    Ok(Row { key, entry })
}

/// Whether a root has fewer segments than roots have: a key that is too short to be split.
fn is_short(root: &[u8], layout: Layout) -> bool {
    root.iter().filter(|byte| **byte == SEPARATOR).count() + 1 < layout.segments
}

/// The cursor between a root and the next.
fn after_root(root: &[u8], layout: Layout, order: Order) -> Cursor {
    match order {
        // Such a root has one key, itself. The roots that begin with it come next: they have more segments.
        Order::Ascending if is_short(root, layout) => Cursor::new(root.to_vec()),
        // Above every key of the root, and below every other: 0x01 follows the separator.
        Order::Ascending => Cursor::new([root, &[0x01]].concat()),
        // The root itself is its smallest key.
        Order::Descending => Cursor::new(root.to_vec()),
    }
}
