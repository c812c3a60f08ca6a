//! Issues for other programs and for paper.

mod csv;
mod markdown;

pub use self::csv::export_csv;
pub use self::markdown::export_markdown;
