//! Documents turned into Markdown with no AI model, within bounds of time and memory.
//!
//! [`Format::detect`] tells what a file is, [`extract()`] reads it:
//!
//! ```
//! use keyward_extract::{Format, Limits, extract};
//!
//! let page = b"<!doctype html><title>Leave</title><h1>Annual leave</h1>
//!     <p>Everybody has <b>thirty</b> days of leave.<script>alert(1)</script>";
//! let format = Format::detect(page, Some("text/html"), Some("leave.html"))?;
//! let extracted = extract(page, format, &Limits::default())?;
//! assert_eq!(extracted.title, "Leave");
//! assert_eq!(
//!     extracted.markdown,
//!     "# Annual leave\n\nEverybody has **thirty** days of leave.\n"
//! );
//! # Ok::<(), keyward_extract::Error>(())
//! ```
//!
//! [`extract()`] keeps to its [`Limits`], but it shares the memory of its caller, and a parser may
//! have a flaw. Files from outside are therefore read by a [`Sandbox`]: another process, with
//! limits on its time and memory that the kernel enforces, whose own side is [`serve_sandboxed`].
//!
//! [`sanitized_html`] renders Markdown so that it is safe to show.

mod block;
mod charset;
mod child;
mod content;
mod document;
mod docx;
mod error;
mod extract;
mod extracted;
mod format;
mod html;
mod iso639;
mod language;
mod limits;
mod markdown;
mod pdf;
mod safe;
mod sandbox;
mod text;
mod title;
mod wire;

pub use child::serve_sandboxed;
pub use error::{Error, Result};
pub use extract::extract;
pub use extracted::Extracted;
pub use format::Format;
pub use language::Language;
pub use limits::Limits;
pub use safe::sanitized_html;
pub use sandbox::Sandbox;
