//! The kernel's own layers: which there are, and where the time of each request goes.
//!
//! | question | module |
//! |---|---|
//! | which layers does the kernel have, and what stands on what? | [`tree`] |
//! | what does the kernel tell of a moment? | [`event`] |
//! | where do events come from? | [`source`] |
//! | which events are one request, and which requests did it become? | [`link`] |
//! | how is its time divided among the layers? | [`link::parts`] |
//! | what does that amount to? | [`tally`], [`figures`] |
//! | where do workers run? | [`workers`] |
//! | which files are read and written? | `files` |
//! | what do requests of io_urings wait for? | [`uring`] |
//! | how does a trace run? | [`session`] |
//! | what does it cost? | [`overhead`] |
//! | what does it do to a load? | [`load`] |
//! | how is it kept? | [`record`] |
//! | what is shown of it? | [`page`](mod@page), [`draw`] |

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod draw;
pub mod event;
pub mod figures;
mod files;
pub mod link;
pub mod load;
pub mod overhead;
pub mod page;
pub mod record;
mod sample;
pub mod session;
pub mod source;
pub mod tally;
pub mod tree;
pub mod uring;
pub mod workers;
