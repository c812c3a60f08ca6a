//! What an adapter of documents must show.

pub mod limits;
pub mod lists;
pub mod model;
pub mod preparing;
pub mod racing;
pub mod reading;
pub mod swapping;
pub mod values;
