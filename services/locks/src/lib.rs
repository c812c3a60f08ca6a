//! Locks on paths with leases, ordered waiters and fencing tokens.
