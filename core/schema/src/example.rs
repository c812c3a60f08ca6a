/// A schema file to begin with, with comments: users with unique addresses, notes and sessions of
/// users, shared templates and places, posts that others find, and pages with locks.
pub const EXAMPLE: &str = include_str!("example.toml");
