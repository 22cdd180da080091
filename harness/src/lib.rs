//! The harness: the common part of all measurements. Cases run in rounds between readings of clocks
//! and counters; what comes out is a document with the machine, the settings, every sample and the
//! figures.
//!
//! | question | module |
//! |---|---|
//! | how is anything measured? | [`rounds`], rules in `docs/statistics.md` |
//! | how do threads of a case start together? | [`crew`] |
//! | what does the measuring itself cost? | [`baseline`] |
//! | on what machine, of what file? | [`host`] |
//! | on which file, when the user names none? | [`scratch`] |
//! | what is a figure, when is a goal reached? | [`figure`] |
//! | which processes measure, and how long? | [`processes`] |
//! | what are the observations? | [`observed`] |
//! | what is saved, and how? | [`document`], fields in `docs/results.md` |
//! | what do results of other programs hold? | [`foreign`] |
//! | which quantities do samples hold? | [`metric`] |
//! | how do results change over commits? | [`history`] |
//! | what do other programs compute with? | [`tidy`] |
//! | what do saved results prove? | [`compare`] |
//!
//! It knows no experiment, no stack and no file format, so that every crate above the first floor
//! can measure itself with it.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod baseline;
pub mod compare;
pub mod crew;
pub mod document;
mod error;
pub mod figure;
pub mod foreign;
pub mod history;
pub mod host;
pub mod metric;
pub mod observed;
pub mod processes;
pub mod rounds;
pub mod scratch;
pub mod tidy;

pub use error::HarnessError;
pub use rounds::{
    Case, Control, Counters, CpuTimes, DeviceCounts, Ended, Failure, Judge, Length, Machine,
    Measured, Meter, NullFloor, Phase, Placement, Precision, Prepare, Progress, ROUNDS_MIN,
    Reading, Reference, Round, Run, RunLength, RunResult, Sample, Seats, Settings, Shortened,
    Unfinished, Work, run, run_keeping, total,
};
