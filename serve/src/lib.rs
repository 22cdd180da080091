//! The providers of a stack as devices that any program can open, without root and without a kernel
//! module: over [`nbd`], and as files of a mount by [`fuse`]. A server is watched through
//! [`control`]; Prometheus reads the same figures over HTTP, from [`metrics`].
//!
//! A server takes a stack that stands, and whatever stands on top of it: a path, one layer or a
//! stack of six are the same to it. It knows no class. Both kinds of server may stand on one stack;
//! they share the locks of its [`ranges`].
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod buffers;
pub mod control;
mod event_loop;
pub mod fuse;
pub mod metrics;
pub mod nbd;
pub mod ranges;
pub mod shown;
mod socket_file;

/// The programs of the page for embedders are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
struct LibraryPage;
