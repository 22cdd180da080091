//! The figures of a server over HTTP, for Prometheus: `GET /metrics` is answered with OpenMetrics
//! text, the same as that of [`openmetrics`](crate::control::openmetrics).
//!
//! **Hostile clients.** One thread answers, and never waits for a client. A request has at most
//! 8 KiB. At most 16 connections exist; a new one replaces the oldest, so
//! silent clients cannot lock others out. A connection ends after one answer, or after ten seconds.
//! The page is made at most 50 times per second.
//!
//! **Times.** The server takes times of some requests as long as it runs, because the thread looks
//! once per second and adapts the share of timed requests to the load.
//!
//! The files: `http` parses a request and writes the answer, `server` is the thread.

mod http;
mod server;

pub use server::Metrics;
