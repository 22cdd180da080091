//! The experiments of `ugeom lab`, and `ugeom ab`.
//!
//! | question | module |
//! |---|---|
//! | what does a layer cost? | [`layers`] |
//! | what does a layer of the kernel cost? | [`kernel`] |
//! | what limits a device? | [`sweep`] |
//! | what does a read from the cache cost? | [`cached`] |
//! | how does it scale, and what buys what? | [`scaling`] |
//! | can threads stand beside the kernel's asynchronous I/O? | [`engines`] |
//! | is B faster than A? | [`ab`] |
//! | what does the load generator cost beside fio? | [`load`] |
//! | how is a provider measured through a server? | [`served`] |
//! | which experiment is a saved result of? | [`saved`] |
//!
//! Each experiment measures into a [`ugeom_harness::document::Document`] and makes its report, a
//! [`ugeom_report::Page`], from that alone.

#![forbid(unsafe_code)]

pub mod ab;
pub mod cached;
pub mod engines;
pub mod kernel;
pub mod layers;
pub mod load;
pub mod saved;
pub mod scaling;
pub mod served;
pub mod sweep;
