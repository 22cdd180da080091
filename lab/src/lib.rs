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
//! | what is a target before it is opened? | [`targets`] |
//! | what does the load generator cost beside fio? | [`load`] |
//! | how is a provider measured through a server? | [`served`] |
//! | what is an experiment, and how is it spread over processes? | [`experiment`] |
//! | which experiment is a saved result of, or a process started for? | [`registry`] |
//!
//! Each is an [`experiment::Experiment`]: options, cases, figures, and a page that is made from the
//! document alone.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod ab;
pub mod cached;
pub mod engines;
pub mod experiment;
pub mod kernel;
pub mod layers;
pub mod load;
pub mod registry;
pub mod scaling;
pub mod served;
pub mod sweep;
pub mod targets;
