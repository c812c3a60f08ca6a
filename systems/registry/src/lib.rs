//! Documents kept in git, in a registry.
