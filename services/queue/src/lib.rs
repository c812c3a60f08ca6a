//! Queues with leases, retries and dead letters, and jobs with a status to watch.
