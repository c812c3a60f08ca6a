//! What records promise, on every engine.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod aging;
mod applying;
mod belongings;
mod bounds;
mod changing;
mod contending;
mod cost;
mod declared;
mod fixture;
mod late;
mod listing;
mod moments;
mod narrowing;
mod page_sizes;
mod past;
mod places;
mod querying;
mod racing;
mod redacting;
mod refusing;
mod riding;
mod sharing;
mod unfit;
