//! fio's job language: job files and command lines, and the jobs that they mean.
//!
//! ```text
//!   job files, arguments --language--> sections --options, value--> Job, Job, ...
//!   understand: defaults of groups, what contradicts itself, what has no effect
//! ```
//!
//! The reference is fio 3.33 and its manual page; docs/run.md lists the differences, with reasons.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod calculate;
mod effects;
pub mod error;
pub mod language;
pub mod options;
mod parsed;
pub mod settings;
mod understand;
mod unverified;
mod value;

pub use error::{JobError, Origin};
pub use language::{Arguments, Environment, Loader, Report, parse_arguments};
pub use parsed::parsed;
pub use settings::Job;
pub use understand::{Understood, keep_files, understand};

#[cfg(test)]
mod tests;
