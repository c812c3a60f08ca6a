//! How large a schema may be. Beyond these it is refused, with the bound in the message.

/// The schema file, and each file with a value's JSON Schema.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;
/// A name of a store, space, index or lock tree.
pub const NAME_BYTES_MAX: usize = 64;
/// Stores in a schema.
pub const STORES_MAX: usize = 64;
/// Spaces in a schema.
pub const SPACES_MAX: usize = 256;
/// Indexes of a space.
pub const INDEXES_MAX: usize = 64;
/// Fields of an index or a declared query.
pub const FIELDS_MAX: usize = 8;
/// Declared queries of a space.
pub const QUERIES_MAX: usize = 64;
/// Fields that a hybrid space shares.
pub const SHARED_FIELDS_MAX: usize = 64;
/// Roles that may read, and roles that may write.
pub const ROLES_MAX: usize = 64;
/// Lock trees in a schema.
pub const LOCKS_MAX: usize = 64;
/// Paths of a lock tree.
pub const LOCK_PATHS_MAX: usize = 64;
/// Versions of a record that a space keeps.
pub const HISTORY_MAX: usize = 1000;
/// The longest time to live, in days.
pub const TTL_DAYS_MAX: u64 = 36_500;
/// Problems that are told of one schema.
pub const PROBLEMS_MAX: usize = 500;
