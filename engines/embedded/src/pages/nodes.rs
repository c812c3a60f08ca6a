//! The nodes of a branch or leaf page.

use super::layout::{Kind, NODE_HEADER_BYTES, PAGE_HEADER_BYTES, Tree, u16_at, u64_at};

const OVERFLOW_FLAG: u16 = 0x01;
const TREE_FLAG: u16 = 0x02;

pub(super) struct Node<'p> {
    pub(super) key: &'p [u8],
    pub(super) content: Content<'p>,
}

pub(super) enum Content<'p> {
    /// Of a branch page: the page below.
    Child(u64),
    Value(&'p [u8]),
    Overflow {
        page: u64,
        length: usize,
    },
    /// A named table.
    Tree(Tree),
}

/// What of a page can be read.
pub(super) struct Nodes<'p> {
    /// The nodes that lie within the page.
    pub(super) nodes: Vec<Node<'p>>,
    /// What is wrong with the page, if anything is.
    pub(super) problem: Option<&'static str>,
}

/// Takes a branch or leaf page apart.
pub(super) fn read(page: &[u8], kind: Kind) -> Nodes<'_> {
    let (lower, upper) = (offset(page, 12), offset(page, 14));
    let sound = PAGE_HEADER_BYTES <= lower && lower <= upper && upper <= page.len();
    if !sound || lower % 2 != 0 {
        return Nodes { nodes: Vec::new(), problem: Some("its free space is not inside the page") };
    }
    let mut problem = None;
    let mut spans = Vec::new();
    let mut nodes = Vec::new();
    for at in (PAGE_HEADER_BYTES..lower).step_by(2) {
        let start = offset(page, at);
        match page.get(start..).filter(|_| start >= upper).and_then(|bytes| node(bytes, kind)) {
            Some((node, size)) => {
                spans.push((start, start + size.next_multiple_of(2)));
                nodes.push(node);
            }
            None => problem = Some("a node lies outside the page, or is of no known kind"),
        }
    }
    // LMDB leaves no gaps between nodes.
    spans.sort_unstable();
    let mut end = upper;
    for span in spans {
        if span.0 != end {
            problem = problem.or(Some("its nodes overlap or leave gaps"));
        }
        end = span.1;
    }
    if end != page.len() {
        problem = problem.or(Some("its nodes overlap or leave gaps"));
    }
    if nodes.is_empty() {
        problem = problem.or(Some("it has no nodes"));
    }
    Nodes { nodes, problem }
}

fn offset(page: &[u8], at: usize) -> usize {
    u16_at(page, at).unwrap_or(0).into()
}

/// The node at the start of `bytes`, and its size.
fn node(bytes: &[u8], kind: Kind) -> Option<(Node<'_>, usize)> {
    let (low, high, flags) = (u16_at(bytes, 0)?, u16_at(bytes, 2)?, u16_at(bytes, 4)?);
    let number = u64::from(low) | u64::from(high) << 16;
    let rest = bytes.get(NODE_HEADER_BYTES..)?;
    let (key, rest) = rest.split_at_checked(u16_at(bytes, 6)?.into())?;
    let before = NODE_HEADER_BYTES + key.len();
    if kind == Kind::Branch {
        let content = Content::Child(number | u64::from(flags) << 32);
        return Some((Node { key, content }, before));
    }
    let length = number as usize;
    let (content, size) = match flags {
        OVERFLOW_FLAG => (Content::Overflow { page: u64_at(rest, 0)?, length }, size_of::<u64>()),
        0 => (Content::Value(rest.get(..length)?), length),
        TREE_FLAG if length == Tree::BYTES => {
            (Content::Tree(Tree::read(rest.get(..length)?)?), length)
        }
        _ => return None,
    };
    // Every key has at least one byte.
    (!key.is_empty()).then_some((Node { key, content }, before + size))
}
