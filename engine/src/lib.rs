//! One trait for ways to run block I/O: sync, io_uring.
