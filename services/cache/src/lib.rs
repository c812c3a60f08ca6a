//! Results of expensive work, computed once for all processes, and purged when their source is gone.
