//! Records: what applications keep, with owners, secondary indexes, queries, and history.
//!
//! A [`Records`] is the declared spaces of one store. A [`Space`] is one of them as one [`Caller`]
//! reaches it; what the owner rule refuses, no operation of it does. A record and its index entries
//! change together:
//!
//! | tier of the engine | how | what queries are worth |
//! |---|---|---|
//! | atomic | in one commit | exact |
//! | recoverable | by a protocol that leaves an intent in the record | exact; leftovers are dropped by readers and removed later |
//! | advisory | one after the other | best effort |
//!
//! On the atomic tier other keys can be part of that commit: see [`Space::with_rider`].

mod access;
mod belongings;
mod bookkeeping;
mod build;
mod caller;
mod catalog;
mod change;
mod cursor;
mod ensure;
mod error;
pub mod field;
mod foreign;
pub mod geo;
mod history;
mod index;
mod inspect;
mod list;
mod merge;
mod moment;
mod near;
mod ordered;
mod place_query;
mod places;
mod query;
mod records;
mod relocate;
mod rider;
mod space;
mod sweep;
mod walk;
mod within;
mod write;

pub use belongings::{Belonging, Belongings, Position, Removed};
pub use build::Built;
pub use caller::Caller;
pub use catalog::{CATALOG_AGE_MAX, CatalogContent, CatalogedIndex, IndexState};
pub use change::{Draft, Next, Precondition, Record, Ttl, Update, Written};
pub use cursor::Question;
pub use error::{Error, Result};
pub use history::{HistoryPage, Past, PastAct, Redaction};
pub use inspect::{Finding, Flaw, Inspected, Inspector, Recognize};
pub use list::{Listed, ListedItem, Listing};
pub use merge::{Arrays, Merge};
pub use moment::moment;
pub use near::{Near, Neighbour, Neighbours};
pub use place_query::PlaceQuery;
pub use query::{
    Answer, BUDGET_DEFAULT, BUDGET_MAX, Bound, By, Explanation, Filter, LIMIT_DEFAULT, LIMIT_MAX,
    Query, Read, Span,
};
pub use records::Records;
pub use relocate::{Belongs, Relocated, Together, Walked};
pub use space::{Operation, Space};
pub use sweep::Swept;
pub use within::Within;
