//! The experiments on the cost of this program's own stack, and all experiments by their names.
//!
//! | question | module |
//! |---|---|
//! | what does a layer cost? | [`layers`] |
//! | what does a read from the cache cost? | [`cached`] |
//! | how does it scale, and what buys what? | [`scaling`] |
//! | what does the load generator cost beside fio? | [`load`] |
//! | which experiment is a saved result of, or a process started for? | [`registry`] |
//!
//! Each is a [`ugeom_experiment::Experiment`]: options, cases, figures, and a page that is made
//! from the document alone. The experiments on devices and on the kernel are in `ugeom_devices`.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod cached;
pub mod layers;
pub mod load;
pub mod registry;
pub mod scaling;
#[cfg(test)]
mod served_tests;
