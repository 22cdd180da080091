//! fio's jobs: its job files and its command line, run on paths, block devices and stacks.
//!
//! ```text
//!   job files, arguments --language--> sections --options--> Job, Job, ...   what is wanted
//!   Job --files, door--> something that takes requests                       what it is done to
//!   worker (a thread a job): offsets, pace, buffers, verify --> door         how it is done
//!   run: groups, start, stop, sampling  --> Outcome --output--> text, JSON   what came out
//! ```
//!
//! The reference is fio 3.33 and its manual page; docs/run.md says what differs, and why.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod calculate;
mod content;
mod draws;
mod effects;
pub mod error;
mod files;
pub mod language;
mod layout;
pub mod options;
pub mod outcome;
pub mod output;
mod parsed;
mod places;
mod replay;
pub mod run;
pub mod settings;
mod spread;
pub mod steady;
pub mod tally;
mod target;
pub mod understand;
pub mod value;
mod worker;

pub use error::{JobError, Origin};
pub use language::{Arguments, Environment, Loader, Report, parse_arguments};
pub use outcome::{JobOutcome, Outcome};
pub use parsed::parsed;
pub use run::{Progress, Watcher, run};
pub use settings::Job;
pub use target::Meaning;
pub use understand::{Understood, refuse_writers, understand};
pub use worker::Trouble;

#[cfg(test)]
mod tests;
