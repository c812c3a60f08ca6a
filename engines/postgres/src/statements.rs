//! What most calls come down to, for those who compare the engine with the same statements sent by
//! something else. May change with every release.

pub use crate::client::session;
pub use crate::commit::PUT;
pub use crate::read::{GET, PAGE};
