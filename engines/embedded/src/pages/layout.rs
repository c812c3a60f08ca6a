//! LMDB's structures on disk: data version 1, 64-bit page numbers, the machine's byte order.

const MAGIC: u32 = 0xBEEF_C0DE;
const DATA_VERSION: u32 = 1;
/// The root of an empty tree.
pub(super) const NO_PAGE: u64 = u64::MAX;

pub(super) const PAGE_HEADER_BYTES: usize = 16;
pub(super) const NODE_HEADER_BYTES: usize = 8;
pub(super) const META_BYTES: usize = PAGE_HEADER_BYTES + 136;
/// The pages after the two meta pages belong to trees, or are free.
pub(super) const FIRST_PAGE: u64 = 2;
pub(super) const PAGE_SIZES: std::ops::RangeInclusive<usize> = 512..=32_768;

/// What a page is, by its flags. LMDB writes no page with any other flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Branch = 0x01,
    Leaf = 0x02,
    Overflow = 0x04,
    Meta = 0x08,
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_ne_bytes(*chunk))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_ne_bytes(*chunk))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_ne_bytes(*chunk))
}

/// The kind of a page, if its header says that it is this page.
pub(super) fn kind(page: &[u8], number: u64) -> Result<Kind, String> {
    if u64_at(page, 0) != Some(number) {
        return Err("its header belongs to another page".to_owned());
    }
    match u16_at(page, 10) {
        Some(0x01) => Ok(Kind::Branch),
        Some(0x02) => Ok(Kind::Leaf),
        Some(0x04) => Ok(Kind::Overflow),
        Some(0x08) => Ok(Kind::Meta),
        _ => Err("its header names no kind of page".to_owned()),
    }
}

/// The number of pages of an overflow run, by the header of its first page.
pub(super) fn overflow_pages(page: &[u8]) -> u64 {
    u32_at(page, 12).unwrap_or(0).into()
}

/// A B+ tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(super) flags: u16,
    pub(super) depth: u16,
    pub(super) branch_pages: u64,
    pub(super) leaf_pages: u64,
    pub(super) overflow_pages: u64,
    pub(super) entries: u64,
    pub(super) root: u64,
}

impl Tree {
    pub(super) const BYTES: usize = 48;

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            flags: u16_at(bytes, 4)?,
            depth: u16_at(bytes, 6)?,
            branch_pages: u64_at(bytes, 8)?,
            leaf_pages: u64_at(bytes, 16)?,
            overflow_pages: u64_at(bytes, 24)?,
            entries: u64_at(bytes, 32)?,
            root: u64_at(bytes, 40)?,
        })
    }

    /// How many pages a walk reads: of an overflow run, only the first.
    pub(super) fn pages(&self) -> u64 {
        self.branch_pages.saturating_add(self.leaf_pages).saturating_add(self.overflow_pages)
    }
}

/// A meta page: where one snapshot of the file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(super) page_size: usize,
    pub(super) last_page: u64,
    pub(super) transaction: u64,
    pub(super) free: Tree,
    pub(super) main: Tree,
}

impl Meta {
    /// Reads meta page 0 or 1, and refuses what LMDB would stumble over.
    pub(super) fn read(page: &[u8], number: u64) -> Result<Self, String> {
        if kind(page, number)? != Kind::Meta {
            return Err("it is no meta page".to_owned());
        }
        let body = page.get(PAGE_HEADER_BYTES..META_BYTES).ok_or("it is cut off")?;
        if u32_at(body, 0) != Some(MAGIC) || u32_at(body, 4) != Some(DATA_VERSION) {
            return Err("it is no LMDB file of data version 1".to_owned());
        }
        let fields = || {
            Some((
                u64_at(body, 16)?,
                Tree::read(body.get(24..)?)?,
                Tree::read(body.get(72..)?)?,
                u64_at(body, 120)?,
                u64_at(body, 128)?,
            ))
        };
        let (map_size, free, main, last_page, transaction) = fields().ok_or("it is cut off")?;
        // LMDB keeps the page size in a field of the free tree that is of no other use.
        let page_size = u32_at(body, 24).unwrap_or(0) as usize;
        if !PAGE_SIZES.contains(&page_size) || !page_size.is_power_of_two() {
            return Err(format!("its page size is {page_size}"));
        }
        let bytes = last_page.checked_add(1).and_then(|pages| pages.checked_mul(page_size as u64));
        if last_page < FIRST_PAGE - 1 || bytes.is_none_or(|bytes| bytes > map_size) {
            return Err(format!("its last page is {last_page}"));
        }
        // A transaction writes the meta page that its number is even or odd for.
        if transaction > 0 && transaction % 2 != number {
            return Err(format!("it names transaction {transaction}"));
        }
        Ok(Self { page_size, last_page, transaction, free, main })
    }
}
