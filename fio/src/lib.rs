//! Runs fio's jobs on paths, block devices and stacks.
//!
//! ```text
//!   Job --files, door--> something that takes requests                       what it is done to
//!   worker (a thread a job): offsets, pace, buffers, verify --> door         how it is done
//!   run: groups, start, stop, sampling  --> Outcome --output--> text, JSON   what came out
//! ```
//!
//! The reference is fio 3.33 and its manual page; docs/run.md lists the differences, with reasons.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod content;
mod draws;
mod files;
mod layout;
pub mod outcome;
pub mod output;
mod places;
mod ranges;
mod replay;
pub mod run;
mod spread;
pub mod steady;
pub mod tally;
mod target;
mod worker;

pub use outcome::{Idleness, JobOutcome, Outcome};
pub use run::{Progress, Watcher, run};
pub use target::Meaning;
pub use worker::{LogError, Trouble, inflate_log};
